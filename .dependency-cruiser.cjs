/**
 * Who may import whom: imports point inward, and a package with a home is imported there alone.
 * The swc parser reads TypeScript here and sees `import type` like any other import, so types keep the same order.
 */

/** From the inside out; a room may import itself, what is listed, and the packages that have no home elsewhere. */
const words = [
  "bounded-map.ts",
  "errors.ts",
  "domain-name.ts",
  "idna2008.ts",
  "money.ts",
  "clock.ts",
  "request-ids.ts",
  "file-text.ts",
  "json.ts",
  "secret.ts",
  "tr46.d.ts",
  "logger.ts",
  "root.ts",
  "saved-file.ts",
  "state-dir.ts",
  "record-file.ts",
  "system-error.ts",
];
const engines = ["upstream/", "quota/", "facts/", "retail/"];
const seen = [
  ...words,
  "redis/redis.ts",
  "redis/address.ts",
  ...engines,
  "metrics.ts",
  "staff/staff-tokens.ts",
  "customers/",
  "config/",
];
const rooms = {
  // The words, of which logger.ts is one: every room is handed the log.
  "(?:bounded-map|errors|domain-name|idna2008|money|clock|request-ids|file-text|json|secret|logger|root|saved-file|state-dir|record-file|system-error)\\.ts":
    words,
  "redis/(?:redis|address|link)\\.ts": [...words, "redis/redis.ts", "redis/address.ts"],
  "quota/": words,
  "facts/": [...words, "quota/", "upstream/"],
  "wire/": [...words, "upstream/", "quota/lane.ts"],
  "upstream/": [...words, "quota/"],
  "retail/": [...words, "quota/", "facts/", "upstream/"],
  "metrics\\.ts": [...words, ...engines],
  "staff/staff-tokens\\.ts": [...words, "wire/scopes.ts"],
  "staff/(?:audit|signed-cart)\\.ts": [...words, "staff/", "retail/promise.ts", "upstream/"],
  "customers/customer-tokens\\.ts": [...words, "facts/", "quota/"],
  "config/": [...words, "redis/address.ts", "staff/staff-tokens.ts", "customers/", ...engines],
  "shop/": seen,
  "staff/account\\.ts": seen,
  "customers/customer-domains\\.ts": [...seen, "staff/account.ts"],
  "staff/carts\\.ts": [...seen, "staff/"],
  // What the next owner needs, in files or in Redis; then who may call the upstream; at last, outside of HTTP, who hands requests on.
  "store\\.ts": [...words, "staff/audit.ts", "staff/signed-cart.ts"],
  "redis/store\\.ts": [...words, "redis/redis.ts", "store.ts", "staff/audit.ts", "staff/signed-cart.ts"],
  "fleet/address\\.ts": [],
  "fleet/lease\\.ts": [...words, "redis/redis.ts", "quota/"],
  "fleet/tenure\\.ts": ["fleet/lease.ts"],
  "fleet/follower\\.ts": [...words, "fleet/", "http/edge/"],
  "engine\\.ts": [
    ...seen,
    "shop/",
    "staff/account.ts",
    "staff/audit.ts",
    "staff/carts.ts",
    "customers/customer-domains.ts",
    "store.ts",
    "fleet/lease.ts",
    "redis/store.ts",
    "fleet/tenure.ts",
  ],
  "http/edge/": [...words, "metrics.ts", "quota/", "wire/", "shop/", "staff/overview.ts"],
  // What staff see of everything.
  "staff/": [...seen, "wire/", "engine.ts", "store.ts"],
  "http/": [...seen, "wire/", "engine.ts", "shop/", "staff/", "store.ts"],
  "probe/": [...seen, "fleet/lease.ts", "redis/link.ts"],
  "keys/": [...words, "staff/staff-tokens.ts", "retail/promise.ts"],
  "app\\.ts": [...seen, "engine.ts", "http/", "staff/", "fleet/"],
  "start-failure\\.ts": ["config/"],
  "main\\.ts": [...seen, "redis/link.ts", "app.ts", "start-failure.ts"],
};

/** Which packages each package may import. Of the service they may import `wire/pages.ts` alone, which contains only types. */
const packages = {
  client: [],
  sandbox: [],
  probe: ["sandbox"],
  storefront: ["client"],
  operator: ["client", "storefront"],
};
/** Those that the service runs: the embedded sandbox, and what reads the probe's answers. */
const used = { "main\\.ts": ["sandbox"], "probe/": ["sandbox", "probe"] };

const homes = {
  axios: "upstream/",
  "lossless-json": "upstream/",
  "lru-cache": "(?:facts/|(?:bounded-map|http/finished-answers|fleet/follower)\\.ts$)",
  winston: "logger\\.ts$",
  "ical-generator": "staff/calendar\\.ts$",
  ioredis: "redis/link\\.ts$",
  express: "(?:app\\.ts$|http/|fleet/follower\\.ts$)",
  "prom-client": "metrics\\.ts$",
  jose: "(?:retail/promise-check|customers/customer-tokens)\\.ts$",
};

const literal = (path) => path.replaceAll(".", "\\.") + (path.endsWith("/") ? "" : "$");

module.exports = {
  forbidden: [
    { name: "no-cycles", severity: "error", from: {}, to: { circular: true } },
    { name: "must-resolve", severity: "error", from: {}, to: { couldNotResolve: true } },
    {
      name: "only-what-production-installs",
      comment: "The pages are bundled.",
      severity: "error",
      from: { pathNot: "^packages/(?:client|storefront|operator)/" },
      to: { dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown"] },
    },
    {
      name: "every-file-has-a-room",
      comment: "Say in .dependency-cruiser.cjs what the new file or folder may import.",
      severity: "error",
      from: { path: "^src/", pathNot: Object.keys(rooms).map((room) => `^src/${room}`) },
      to: { path: "^src/" },
    },
    ...Object.entries(rooms).map(([room, inner]) => ({
      name: `inward:${room.replaceAll("\\", "")}`,
      severity: "error",
      from: { path: `^src/${room}` },
      to: { path: "^src/", pathNot: [`^src/${room}`, ...inner.map((path) => `^src/${literal(path)}`)] },
    })),
    ...Object.entries(packages).map(([name, others]) => ({
      name: `package:${name}`,
      severity: "error",
      from: { path: `^packages/${name}/src/` },
      to: {
        path: "^(?:src|packages)/",
        pathNot: ["^src/wire/pages\\.ts$", ...[name, ...others].map((one) => `^packages/${one}/`)],
      },
    })),
    {
      name: "service:few-packages",
      severity: "error",
      from: { path: "^src/", pathNot: Object.keys(used).map((file) => `^src/${file}`) },
      to: { path: "^packages/" },
    },
    ...Object.entries(used).map(([file, names]) => ({
      name: `service:${file.replaceAll("\\", "")}`,
      severity: "error",
      from: { path: `^src/${file}` },
      to: { path: "^packages/", pathNot: names.map((name) => `^packages/${name}/`) },
    })),
    ...Object.entries(homes).map(([name, home]) => ({
      name: `one-home:${name}`,
      severity: "error",
      from: { path: "^src/", pathNot: `^src/${home}` },
      to: { path: `(?:^|/)(?:node_modules/)?(?:@types/)?${name}(?:/|$)` },
    })),
  ],
  options: {
    parser: "swc",
    doNotFollow: { path: "node_modules" },
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "node", "default"] },
  },
};
