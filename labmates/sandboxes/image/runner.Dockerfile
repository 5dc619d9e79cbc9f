# The runner is the one part that changes often: a layer of its own costs seconds.
ARG PACKAGES_IMAGE
FROM ${PACKAGES_IMAGE}
COPY runner.py /opt/labmates/runner.py
ENTRYPOINT ["/opt/venv/bin/python", "-s", "-P", "/opt/labmates/runner.py"]
CMD ["/run/labmates/settings.json"]
