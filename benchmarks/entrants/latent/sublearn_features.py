"""LatentFeatureLasso; settings are its parameters, "n_components" among them."""

import warnings

from sublearn.latent import LatentFeatureLasso


def fit(train, task):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LatentFeatureLasso(random_state=task.seed, **task.settings).fit(train["X"])


def predict(model, test, task):
    return {"Z": model.codes_, "W": model.components_, "b": model.intercept_}
