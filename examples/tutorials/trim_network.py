# %% [markdown]
# # Trim a network
#
# A trained network is larger than it has to be. In this tutorial you remove most of its weights,
# check what that costs on samples it has not seen, and save the small network.
#
# You need PyTorch: `pip install 'sublearn[torch]'`. The task is to read digits of 8 x 8 pixels.

# %%
import torch
from sklearn.datasets import load_digits
from torch import nn

X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
unseen, X, y = (X[1300:], y[1300:]), X[:1300], y[:1300]
torch.manual_seed(0)
network = nn.Sequential(nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 10))
optimizer = torch.optim.Adam(network.parameters(), 1e-2)
for _ in range(60):
    optimizer.zero_grad()
    nn.functional.cross_entropy(network(X), y).backward()
    optimizer.step()
right = (network(unseen[0]).argmax(1) == unseen[1]).float().mean()
print(f"{sum(p.numel() for p in network.parameters()):,} parameters, {right:.1%} right")

# %% [markdown]
# ## Trim
#
# You say by how much the loss may rise. `deep_trim` looks for the largest l1 penalty that keeps to
# it, layer by layer, and trains what is left.

# %%
from sublearn.trim import L1Search, Retraining, deep_trim

result = deep_trim(
    network,
    (X, y),
    eval_set=unseen,
    max_increase=0.05,
    search=L1Search(max_stages=8),
    retraining=Retraining(warm_epochs=5),
    random_state=0,
)
print(result.report)

# %% [markdown]
# ## Look at what is left
#
# The first panel counts weights by layer. The second shows each penalty that was tried: blue ones
# keep to your limit. The third says what you gain.

# %%
result.plot()

# %% [markdown]
# The first layer no longer looks at all pixels. Dark pixels are still read by many neurons; those
# at the edge by none.

# %%
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(3.6, 3), layout="constrained")
shown = ax.imshow(result.masks["0"].sum(0).reshape(8, 8).numpy(), cmap="Blues")
ax.set_title("Weights left on each pixel", fontsize=10)
ax.set_axis_off()
figure.colorbar(shown, ax=ax)

# %% [markdown]
# ## Use it
#
# `to_sparse` makes layers that skip what was removed. A file of it opens without your classes.

# %%
from sublearn.trim import load_network, save_network

small = result.to_sparse()
save_network(small, "digits.safetensors")
again = load_network("digits.safetensors")
print((again(unseen[0]).argmax(1) == unseen[1]).float().mean())

# %% [markdown]
# ## What to try on your data
#
# - A size instead of a loss: `deep_trim(network, data, max_weights=10_000)`.
# - Always give `eval_set`. Without it the limit is about samples the network was trained on.
# - Sparse layers are fast on a CPU when few weights are left. For a graphics card remove whole
#   neurons, with `result.remove_neurons()`, or quantise instead; see
#   [Deep-Trim](../methods/deep_trim.md).
