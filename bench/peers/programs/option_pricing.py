# Options: Black and Scholes by formula, Monte Carlo with antithetic paths, an American put on a tree; NumPy, SciPy.
import numpy as np
from scipy.special import ndtr

spot, strike, rate, vol, time_left = 100.0, 105.0, 0.03, 0.2, 1.0
root = vol * np.sqrt(time_left)
d1 = (np.log(spot / strike) + (rate + vol**2 / 2) * time_left) / root
call = spot * ndtr(d1) - strike * np.exp(-rate * time_left) * ndtr(d1 - root)
print(f"call {call:.4f}, put {call - spot + strike * np.exp(-rate * time_left):.4f}")
density = np.exp(-d1**2 / 2) / np.sqrt(2 * np.pi)
vega, gamma = spot * density * np.sqrt(time_left), density / (spot * root)
print(f"delta {ndtr(d1):.4f} vega {vega:.4f} gamma {gamma:.5f}")


def monte_carlo(seed, n, steps, payoff):
    z = np.random.default_rng(seed).normal(size=(n, steps))
    both = np.concatenate((z, -z))
    dt = time_left / steps
    paths = spot * np.exp(np.cumsum((rate - vol**2 / 2) * dt + vol * np.sqrt(dt) * both, axis=1))
    value = np.exp(-rate * time_left) * payoff(paths)
    return value.mean(), value.std() / np.sqrt(2.0 * n)


price, error = monte_carlo(11, 20000, 8, lambda p: np.maximum(p[:, -1] - strike, 0))
print(f"simulated within four errors: {abs(price - call) < 4 * error}, error {error:.2f}")
asian, _ = monte_carlo(12, 20000, 8, lambda p: np.maximum(p.mean(axis=1) - strike, 0))
print("an Asian call is cheaper:", asian < price)


def american_put(n):
    dt = time_left / n
    up = np.exp(vol * np.sqrt(dt))
    q = (np.exp(rate * dt) - 1 / up) / (up - 1 / up)
    value = np.maximum(strike - spot * up ** (2.0 * np.arange(n + 1) - n), 0)
    for i in range(n - 1, -1, -1):
        held = np.exp(-rate * dt) * (q * value[1:] + (1 - q) * value[:-1])
        value = np.maximum(held, strike - spot * up ** (2.0 * np.arange(i + 1) - i))
    return value[0]


print(f"american put {american_put(200):.3f}")
