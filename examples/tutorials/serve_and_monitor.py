# %% [markdown]
# # Serve a model, and watch it
#
# A model is of use where other programs can ask it. In this tutorial you put one behind an address,
# ask it, ask it wrongly, and read what its monitoring says.
#
# You need `pip install 'sublearn[serve]'`. We train a small tagger first.

# %%
from sublearn.extreme import TextTagger
from sublearn.io import load_quickstart

data = load_quickstart(n_train=2000)
tagger = TextTagger(analyzer="word").fit(data.train_texts, data.train_labels)
tagger.save("tags.model")

# %% [markdown]
# ## Start it
#
# In a shell the line is `sublearn serve tags.model --port 8000`. Here we start the same from
# Python, at a port that is free, and wait until the server says that it is ready.

# %%
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = str(free.getsockname()[1])
address = f"http://127.0.0.1:{port}"
command = [sys.executable, "-m", "sublearn", "serve", "tags.model", "--port", port]
server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def get(path, question=None):
    body = None if question is None else json.dumps(question).encode()
    request = urllib.request.Request(address + path, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return answer.read().decode()


for _ in range(300):
    try:
        print(get("/readyz"))
        break
    except urllib.error.URLError:
        time.sleep(0.2)

# %% [markdown]
# ## Ask

# %%
print(get("/predict", {"texts": ["history of railways"], "k": 3}))

# %% [markdown]
# A question that means nothing gets one sentence that says why, and a status that programs know.

# %%
try:
    get("/predict", {"texts": "history of railways", "k": 3})
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())

# %% [markdown]
# ## Watch
#
# We ask 300 times, as a busy program would, and measure how long each answer takes.

# %%
times = []
for text in data.test_texts[:300]:
    start = time.perf_counter()
    get("/predict", {"texts": [text], "k": 5})
    times.append(1000 * (time.perf_counter() - start))

# %% [markdown]
# The server has counted, too. `/metrics` is what Prometheus reads.

# %%
lines = get("/metrics").splitlines()
print("\n".join(line for line in lines if line.startswith("sublearn_requests_total")))

# %% [markdown]
# The mean hides what users feel. Look at the slowest answers: the dashed line is the time that 95
# of 100 answers keep to.

# %%
import matplotlib.pyplot as plt
import numpy as np

figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
ax.hist(times, bins=40, color="#0072b2")
ax.axvline(np.quantile(times, 0.95), color="#c04f00", ls="--", label="95 of 100")
ax.set(xlabel="milliseconds", ylabel="answers")
ax.set_title("Time of an answer", loc="left")
ax.legend(frameon=False)

# %%
server.terminate()
code = server.wait(timeout=30)

# %% [markdown]
# ## What to try on your data
#
# - Open the address in a browser: there is a page to try the model on.
# - `--watch` takes a new file of the model without a stop. A file that is damaged is refused, and
#   the old model goes on.
# - Before others can reach it, set keys and limits; see [Over HTTP](../serving.md) and the
#   [threat model](../threat_model.md).
# - Watch the scores as well as the times: if the best score of new texts falls week by week, they
#   have moved away from what the model was trained on.
