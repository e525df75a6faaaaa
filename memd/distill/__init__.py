"""Events to summaries, by rules alone: episodes, then what was decided, failed, fixed and asked for."""
