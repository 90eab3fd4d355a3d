"""Whether answers are true: facts counted from raw objects, beside what redra answers."""
