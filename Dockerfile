FROM python:3.11-slim
RUN pip install --no-cache-dir "uv>=0.8,<1"
WORKDIR /app
COPY . .
RUN uv sync --frozen --no-dev --python python3
ENV PATH="/app/.venv/bin:$PATH"
USER nobody
CMD ["redra", "--help"]
