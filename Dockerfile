FROM python:3.11-slim
RUN pip install --no-cache-dir "uv>=0.8,<1"
WORKDIR /app
COPY . .
# Nothing is written below /app later: what is not compiled here is compiled at each start.
RUN uv sync --frozen --no-dev --compile-bytecode --python python3 \
    && .venv/bin/python -m compileall -q app projections migrations
ENV PATH="/app/.venv/bin:$PATH" REDRA_DATA=/var/lib/redra
# Database, keys and kubeconfig. Nothing else is written to, but /tmp.
RUN install -d -o nobody -m 0700 /var/lib/redra
USER nobody
EXPOSE 8443
HEALTHCHECK --interval=2s --timeout=5s --start-period=60s --retries=3 CMD ["python3", "-c", "import ssl, urllib.request as u; u.urlopen('https://127.0.0.1:8443/readyz', context=ssl.create_default_context(cafile='/var/lib/redra/pki/ca.crt'))"]
CMD ["redra", "up", "--tls", "--listen", "0.0.0.0:8443"]
