"""What FABRIC's services decide and answer. Nothing here makes a network; ``granted.Ground`` does."""
