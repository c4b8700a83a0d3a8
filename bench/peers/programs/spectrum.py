# A signal in noise: its spectrum, a filter, where it changes; SciPy.
# draws: 2-6
# left out: 10-26
import numpy as np
from scipy import signal

fs, n = 1000.0, 8000
t = np.arange(n) / fs
noise = np.random.default_rng(3).normal(size=n)
tone = np.where(t < 4.0, np.sin(2 * np.pi * 50 * t), np.sin(2 * np.pi * 120 * t))
x = tone + 0.4 * np.sin(2 * np.pi * 333.0 * t) + 0.8 * noise

f, power = signal.welch(x, fs=fs, nperseg=1000)
peaks, _ = signal.find_peaks(power, height=10 * np.median(power))
print("peaks of the spectrum:")
for p in peaks:
    print(f"  {f[p]:6.1f} Hz, {10 * np.log10(power[p]):6.1f} dB")

z = np.fft.rfft(x)
at = np.fft.rfftfreq(n, 1 / fs)
clean = np.fft.irfft(np.where((at > 40) & (at < 130), z, 0), n)


def snr(y):
    return 10 * np.log10(np.sum(tone**2) / np.sum((y - tone) ** 2))


print(f"signal to noise: {snr(x):.1f} dB before, {snr(clean):.1f} dB after")
m = 401
h = signal.firwin(m, (40, 130), pass_zero=False, fs=fs, window="hamming", scale=False)
fir = signal.fftconvolve(x, h, "same")
print(f"by a window of {m} numbers: {snr(fir):.1f} dB")
print(f"both agree: {np.corrcoef(clean[500:-500], fir[500:-500])[0, 1] > 0.99}")

freqs, times, s = signal.stft(clean, fs=fs, nperseg=400)
strongest = freqs[np.abs(s).argmax(axis=0)]
change = np.nonzero(np.diff(strongest) > 50)[0]
print(f"the tone changes from {strongest[3]:.0f} to {strongest[-4]:.0f} Hz at {times[change[0]]:.1f} s")
half = signal.resample(clean, n // 2)
print(f"resampled: {len(half)} numbers, the same: {np.allclose(half[100:-100], clean[::2][100:-100], atol=1e-9)}")
