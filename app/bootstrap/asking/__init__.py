"""Questions of commands on their way: what is asked, and which server is."""
