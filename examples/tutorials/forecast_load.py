# %% [markdown]
# # Forecast a city's load
#
# A utility wants to know tomorrow's load, hour by hour, and how far off the forecast may be. In
# this tutorial you forecast a day, look at the interval around it, and test the forecaster on the
# past.
#
# The loads are made up, so that this runs everywhere: a day's rhythm, quiet weekends, heating and
# cooling, noise.

# %%
import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
hours = pd.date_range("2025-01-06", periods=24 * 7 * 16, freq="h")
clock, is_weekend = hours.hour.to_numpy(), hours.day_of_week.to_numpy() >= 5
season = 8 - 12 * np.cos(2 * np.pi * hours.day_of_year.to_numpy() / 365)
temperature = season + 4 * np.sin(2 * np.pi * (clock - 9) / 24) + rng.normal(0, 1, len(hours))
rhythm = 9 * np.exp(-((clock - 8) ** 2) / 8) + 12 * np.exp(-((clock - 19) ** 2) / 10)
load = 60 + rhythm * np.where(is_weekend, 0.6, 1.0) + 0.05 * (temperature - 16) ** 2
load = pd.Series(load + rng.normal(0, 0.8, len(hours)), index=hours, name="load, MW")
weather = pd.DataFrame({"temperature": temperature}, index=hours)
print(load.tail(3))

# %% [markdown]
# ## Forecast a day
#
# The forecaster gets the series first and the weather second. For the hours to come it needs the
# weather of these hours: here the measured one, in life a weather forecast.

# %%
from sublearn.forecast import LoadFeatures, LoadForecaster

features = LoadFeatures(lead_blocks=[24])  # one model for all hours of the day
model = LoadForecaster(24, features=features, random_state=0)
model.fit(load[:-24], weather[:-24])
model.plot(X=weather[-24:], truth=load[-24:], coverage=0.9)

# %% [markdown]
# The band is made to hold the load in nine hours out of ten. Its width comes from the errors on
# hours that the model had not seen.
#
# ## Would it have worked?
#
# `backtest` forecasts from many past midnights, looks at the loads that came, and goes on. No
# forecast sees a load after its midnight.

# %%
from sublearn.forecast import backtest

result = backtest(LoadForecaster(24, features=features, random_state=0), load, weather, n_origins=7)
print(result)

# %%
result.plot()

# %% [markdown]
# Always compare with something simple. The load of a week ago is a forecast, too.

# %%
last_week = load.shift(24 * 7)[-24 * 7 :]
error = np.abs(load[-24 * 7 :] - last_week) / load[-24 * 7 :]
print(f"model {result.scores['mape']:.2f} %, last week's load {100 * error.mean():.2f} %")

# %% [markdown]
# ## What to try on your data
#
# - A CSV file with a column of times: `sublearn fit load loads.csv --target load --model
#   load.model`.
# - `holidays=[...]` takes dates; holidays look like no other Tuesday.
# - If a load that was forecast too low costs more than one too high, shift the loss:
#   `loss=TubeLoss.shifted(0.04, 0.02)`.
# - Every day, `model.update(new_loads, new_weather)` takes the day in without fitting anew; see
#   [Load forecasting](../methods/load_forecasting.md).
