"""The machines and cables of the double: name spaces, bridges, sshd. It knows nothing of control planes."""
