"""System information functions (manual 9.26): definitions as text, what an object is called, who may do what."""
