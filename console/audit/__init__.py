"""Who did what, from where, and what it changed: written beside every act of a person, never changed afterwards."""
