const root = process.argv[2];
const { waits, servedWithin, meanWaitMs, useOfSafeBound } = await import(root + "/test/quota/support/waits.js");
const { openTimedFleet } = await import(root + "/test/quota/support/timed-fleet.js");
const { startRedis } = await import(root + "/test/support/redis-server.js");
const { mulberry } = await import(root + "/test/quota/support/crowd.js");
const sum = { came: 0, served: 0 }; const rows = [];
for (let seed = 1; seed <= Number(process.argv[3]); seed++) {
  const redis = await startRedis(); const random = mulberry(seed);
  const { clock, ...fleet } = await openTimedFleet({ redisUrl: redis.url, replicas: 4, budget: 57, latencyMs: () => 0.3 + random(), commandTimeoutMs: 100 });
  const seen = await waits({ budget: 57, windows: 9, load: 1, carts: 1/3, seed }, { clock, quotas: fleet.replicas.map(({quota}) => quota), balance: () => Math.floor(random()*4) });
  fleet.close(); await redis.close();
  sum.came += seen.kept.came; sum.served += seen.kept.served; rows.push(`${seen.kept.served}/${seen.kept.came}/${useOfSafeBound(seen, 57, 9).toFixed(3)}`);
}
console.log(root, JSON.stringify(sum), (sum.served/sum.came).toFixed(4), rows.join(" "));
