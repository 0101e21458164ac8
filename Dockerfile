# Untested: no container engine has built this file yet.
FROM python:3.13-slim AS build
COPY . /source
RUN pip install --no-cache-dir --root-user-action ignore uv \
 && uv build --wheel --out-dir /dist /source \
 && uv venv /opt/queue-depth \
 && uv pip install --no-cache --python /opt/queue-depth/bin/python /dist/*.whl

FROM python:3.13-slim
COPY --from=build /opt/queue-depth /opt/queue-depth
ENV PATH=/opt/queue-depth/bin:$PATH PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["queue-depth"]
CMD ["serve"]
