#!/usr/bin/env bash
# npm run test:wordpress: the plugin in Debian's WordPress, in Chromium. Installs what is missing, and leaves nothing running.
# WORDPRESS_DIR=/path/to/wordpress tries another copy of WordPress, and its WooCommerce if it has one.
set -euo pipefail
cd "$(dirname "$0")/../../.."
export PATH="$PATH:/usr/sbin"

packages=(wordpress wordpress-theme-twentytwentythree mariadb-server-core mariadb-client-core php-cli php-intl php-mysql php-xml chromium-headless-shell)
if ! dpkg --status "${packages[@]}" >/dev/null 2>&1; then
  as_root=""
  [ "$(id -u)" = 0 ] || as_root=sudo
  $as_root apt-get update -qq
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
fi
npm run build --silent
exec npx jest --testMatch '**/wordpress.e2e.ts' "$@"
