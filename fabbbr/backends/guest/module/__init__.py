"""Congestion controls that a user brings as kernel modules: built for the guest's kernel, and tried there."""
