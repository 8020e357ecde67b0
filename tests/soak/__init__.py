"""Long runs under fire: producers and workers that are killed and stopped at random, and what must hold at the end."""
