/** Loaded into a process before its program: the first SIGUSR2 sets its wall clock ahead by an hour, the next one back. */
const HOUR_MS = 3_600_000;
const now = Date.now;
let aheadMs = 0;
Date.now = () => now() + aheadMs;
process.on("SIGUSR2", () => {
  aheadMs = HOUR_MS - aheadMs;
});
