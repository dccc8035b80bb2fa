/** A WordPress of its own: a copy of Debian's files, MariaDB on a socket and PHP's web server, in a temporary folder. */
import { execFile, spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { freePort } from "../../../test/support/free-port.js";
import { temporaryFolder, until } from "../../../test/support/service.js";

const run = promisify(execFile);
const PLUGIN = fileURLToPath(new URL("../af-domain-search", import.meta.url));
const IMITATION = fileURLToPath(new URL("woocommerce.php", import.meta.url));

/** Another copy of WordPress can be tried instead of Debian's, also one that contains WooCommerce. */
const WORDPRESS = process.env["WORDPRESS_DIR"] ?? "/usr/share/wordpress";
const HAS_WOOCOMMERCE = existsSync(join(WORDPRESS, "wp-content/plugins/woocommerce"));

export const ADMINISTRATOR = { name: "admin", password: "a long password of the test" } as const;

export interface Site {
  readonly url: string;
  /** Runs PHP with WordPress and its plugins loaded, as the administrator, and returns what it prints. Throws if it fails or the plugin warns. */
  php(code: string): string;
  /** Creates a page and returns its address. */
  page(title: string, content: string): string;
  /** Loads this PHP with every request. */
  mustUse(name: string, code: string): void;
  /** What PHP has warned of in the plugin's files. */
  complaints(): string[];
  /** Activates WooCommerce if this WordPress has it, else its imitation. */
  activateWooCommerce(): void;
  close(): Promise<void>;
}

export async function startSite(): Promise<Site> {
  const folder = temporaryFolder();
  const data = join(folder.path, "data");
  const socket = join(folder.path, "db.sock");
  const root = join(folder.path, "site");
  const asUser = process.getuid?.() === 0 ? ["--user=root"] : [];

  await run("mariadb-install-db", ["--no-defaults", `--datadir=${data}`, "--skip-test-db", ...asUser]);
  const local = ["--skip-networking", "--skip-grant-tables", "--innodb-flush-log-at-trx-commit=0"];
  const db = spawn(
    "mariadbd",
    ["--no-defaults", `--datadir=${data}`, `--socket=${socket}`, ...local, ...asUser],
    { stdio: "ignore" },
  );
  await until(() => existsSync(socket), "the start of MariaDB");
  await run("mariadb", ["--no-defaults", `--socket=${socket}`, "-e", "CREATE DATABASE wordpress"]);

  cpSync(WORDPRESS, root, { recursive: true, dereference: true });
  symlinkSync(PLUGIN, join(root, "wp-content/plugins/af-domain-search"));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  writeFileSync(join(root, "wp-config.php"), configOf(socket, url));
  const web = spawn("php", ["-d", "opcache.enable_cli=1", "-S", `127.0.0.1:${port}`, "-t", root], {
    env: { ...process.env, PHP_CLI_SERVER_WORKERS: "4" },
    stdio: "ignore",
    // Its workers end with its process group.
    detached: true,
  });

  const file = join(folder.path, "run.php");
  function runPhp(code: string): string {
    writeFileSync(
      file,
      `<?php\nset_error_handler(function ($level, $message, $file, $line) {
      if (error_reporting() & $level && strpos($file, 'domain-search')) throw new ErrorException("$message in $file:$line"); });
      set_exception_handler(function ($error) { fwrite(STDERR, $error); exit(1); });\n${code}`,
    );
    const { status, stdout, stderr } = spawnSync("php", ["-d", "memory_limit=512M", file], {
      encoding: "utf8",
    });
    if (status !== 0) throw new Error(stdout + stderr);
    return stdout;
  }
  const load = `$_SERVER += ['HTTP_HOST' => '127.0.0.1:${port}', 'REQUEST_METHOD' => 'GET', 'SERVER_PROTOCOL' => 'HTTP/1.1'];`;
  runPhp(`${load} define('WP_INSTALLING', true); require '${root}/wp-load.php'; require ABSPATH . 'wp-admin/includes/upgrade.php';
    wp_install('A shop', '${ADMINISTRATOR.name}', 'admin@example.af', false, '', '${ADMINISTRATOR.password}');`);

  const php: Site["php"] = (code) =>
    runPhp(`${load} require '${root}/wp-load.php'; wp_set_current_user(1);\n${code}`);
  const activate = (plugin: string): string =>
    php(`require_once ABSPATH . 'wp-admin/includes/plugin.php';
      $result = activate_plugin('${plugin}'); if (is_wp_error($result)) throw new Exception($result->get_error_message());`);
  activate("af-domain-search/af-domain-search.php");

  return {
    url,
    php,
    page: (title, content) =>
      php(`echo get_permalink(wp_insert_post(['post_type' => 'page', 'post_status' => 'publish',
        'post_title' => '${title}', 'post_content' => '${content}']));`),
    mustUse(name, code) {
      const plugins = join(root, "wp-content/mu-plugins");
      mkdirSync(plugins, { recursive: true });
      writeFileSync(join(plugins, `${name}.php`), `<?php\n${code}`);
    },
    complaints() {
      const log = join(root, "wp-content/debug.log");
      if (!existsSync(log)) return [];
      return readFileSync(log, "utf8")
        .split("\n")
        .filter((line) => line.includes("domain-search"));
    },
    activateWooCommerce() {
      const plugins = join(root, "wp-content/plugins/woocommerce");
      if (!HAS_WOOCOMMERCE) {
        mkdirSync(plugins);
        cpSync(IMITATION, join(plugins, "woocommerce.php"));
      }
      activate("woocommerce/woocommerce.php");
    },
    async close() {
      if (web.pid !== undefined) process.kill(-web.pid);
      db.kill();
      await new Promise((done) => db.once("close", done));
      folder.remove();
    },
  };
}

function configOf(socket: string, url: string): string {
  return `<?php
    foreach (['DB_NAME' => 'wordpress', 'DB_USER' => 'any', 'DB_PASSWORD' => '', 'DB_HOST' => 'localhost:${socket}', 'DB_CHARSET' => 'utf8mb4',
      'DB_COLLATE' => '', 'WP_HOME' => '${url}', 'WP_SITEURL' => '${url}', 'WP_DEBUG' => true, 'WP_DEBUG_LOG' => true, 'WP_DEBUG_DISPLAY' => false,
      'DISABLE_WP_CRON' => true, 'WP_HTTP_BLOCK_EXTERNAL' => true, 'WP_ACCESSIBLE_HOSTS' => '127.0.0.1',
      'AUTOMATIC_UPDATER_DISABLED' => true] as $name => $value) define($name, $value);
    $table_prefix = 'wp_';
    if (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');
    require_once ABSPATH . 'wp-settings.php';
  `;
}
