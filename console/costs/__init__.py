"""Pages about money: what a month cost whom, budgets, prices; and the check-up."""
