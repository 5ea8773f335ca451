"""Scripts from public repositories, run as they are on a real card and on the virtual one."""
