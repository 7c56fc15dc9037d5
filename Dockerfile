# The command line and `serve` in an image of its own:
#
#     docker build -t pyengine .
#     docker run --rm -v "$PWD:/data" -w /data pyengine diagnose broker-10h00.json broker-10h01.json
#     docker run --rm -p 127.0.0.1:61613:61613 pyengine serve activemq --listen stomp://0.0.0.0:61613 --allow-anonymous
#
# The first stage compiles a wheel from the source distribution, the second has Python, the wheel and no compiler.
ARG PYTHON=3.13
FROM python:${PYTHON}-slim AS build
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev
COPY pyproject.toml setup.py MANIFEST.in LICENSE README.md README.zh.md CHANGELOG.md pyengine_pytest.py /source/
COPY engine /source/engine
COPY pyengine /source/pyengine
COPY wheels/backend.txt /source/wheels/
WORKDIR /source
RUN python -m pip install --no-cache-dir --requirement wheels/backend.txt
RUN python -m pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels .

FROM python:${PYTHON}-slim
COPY --from=build /wheels /wheels
RUN python -m pip install --no-cache-dir "$(echo /wheels/*.whl)[cli,report,lint,metrics,rocketmq]" && rm -r /wheels
RUN useradd --create-home --uid 1000 pyengine
USER pyengine
WORKDIR /home/pyengine
STOPSIGNAL SIGINT
ENTRYPOINT ["pyengine"]
CMD ["--help"]
