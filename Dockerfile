# The image of Postrider: the npm package on a slim Node image. docs/install-container.md describes it.
# Any image with Node 24.21 or later and a POSIX shell works as the base, such as a mirror of your own.
ARG NODE_IMAGE=node:24-bookworm-slim
# The digest of the base image, which pins it. Without a digest the tag decides.
ARG NODE_DIGEST=
ARG BASE=${NODE_IMAGE}${NODE_DIGEST:+@}${NODE_DIGEST}

# The package is the same on every platform, so the package is built once, on the platform of the builder.
FROM --platform=$BUILDPLATFORM ${BASE} AS package
WORKDIR /build
COPY package.json package-lock.json ./
# No install script runs here, because the scripts of the checkout need files that are copied later.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN npm pack --pack-destination /tmp && mkdir /package && tar --extract --file /tmp/postrider-*.tgz --directory /package --strip-components 1

FROM ${BASE} AS installation
WORKDIR /opt/postrider
COPY --from=package /package /opt/postrider
# The lockfile decides the versions of the dependencies.
COPY --from=package /build/package-lock.json /opt/postrider/package-lock.json
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund

FROM ${BASE}
LABEL org.opencontainers.image.title="Postrider" \
      org.opencontainers.image.description="The transactional email sending service that teams run themselves." \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=installation /opt/postrider /opt/postrider
RUN mkdir /data && chown 10001:10001 /data && ln -s /opt/postrider/bin/postrider.js /usr/local/bin/postrider
# The user is a number, so that Kubernetes can verify that the user is not root.
USER 10001:10001
WORKDIR /data
# The root file system may be read-only, because the service writes only below /data. The public listener must accept
# connections from outside the container. The operator listener accepts such connections only with a password, so it
# listens on the loopback interface until POSTRIDER_OPERATOR_LISTEN and a password are set.
ENV NODE_ENV=production \
    NODE_OPTIONS=--max-semi-space-size=16 \
    XDG_CACHE_HOME=/data/.cache \
    POSTRIDER_DATABASE=sqlite:/data/postrider.db \
    POSTRIDER_LISTEN=0.0.0.0:8080
VOLUME /data
EXPOSE 8080 8081
STOPSIGNAL SIGTERM
# HEALTH_URL names the listener of a container without the role `api`, such as http://127.0.0.1:8081/healthz.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
  CMD ["node", "-e", "fetch(process.env.HEALTH_URL || 'http://127.0.0.1:8080/healthz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["postrider"]
CMD ["serve", "--no-key"]
