"""What every fit has: progress that is watched, an end that is kept, labels that are shared."""
