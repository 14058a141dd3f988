"""What was measured against what was asked."""
