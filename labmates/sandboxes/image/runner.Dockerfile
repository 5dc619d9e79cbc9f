# The runner is the one part that changes often: a layer of its own costs seconds.
ARG PACKAGES_IMAGE
FROM ${PACKAGES_IMAGE}
COPY runner /opt/labmates/runner
ENTRYPOINT ["/opt/venv/bin/python", "-s", "-P", "/opt/labmates/runner/__main__.py"]
CMD ["/run/labmates/settings.json"]
