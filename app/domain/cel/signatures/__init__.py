"""Types of CEL, and the declarations of functions over them."""
