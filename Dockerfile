# The production image: no compiler, no development packages, no secrets, an unprivileged user.
FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json tsconfig.json tsconfig.build.json build.js ./
COPY packages ./packages
COPY src ./src
# It also builds.
RUN npm ci --include=dev --no-audit --no-fund && npm prune --omit=dev --no-audit --no-fund

FROM node:24-bookworm-slim
WORKDIR /app
ENV NODE_ENV=production STATE_DIR=/var/lib/af-storefront
RUN install -d -o node -g node -m 700 "$STATE_DIR"
# Owned by root, so that the service can't change its own program.
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/packages ./packages
COPY --from=build /app/dist ./dist
COPY config ./config
USER node
VOLUME /var/lib/af-storefront
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "-e", "require('node:http').get({ port: process.env.PORT || 3000, path: '/livez' }, ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))"]
CMD ["node", "dist/main.js"]
