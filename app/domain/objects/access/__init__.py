"""Role-based access control: rules, default roles, and privilege escalation."""
