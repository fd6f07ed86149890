"""Services on pages: the list, one service, its buttons, the registration. It has no rows of its own."""
