FROM python:3.11-slim
RUN pip install --no-cache-dir "uv>=0.8,<1"
WORKDIR /app
COPY . .
RUN uv sync --frozen --no-dev --python python3
ENV PATH="/app/.venv/bin:$PATH"
# Where docker-compose.yml puts REDRA_DATA: the kubeconfig is written there.
RUN install -d -o nobody -m 0700 /var/lib/redra
USER nobody
CMD ["redra", "--help"]
