"""The log and who may write it: oracle, lease, group commit, timelines, holds."""
