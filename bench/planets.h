/* planets.h — the sun and four planets of the n-body programs (data of the Computer Language Benchmarks Game):
 * positions in astronomical units, velocities per day, masses in suns; planets_begin makes years and 4 pi^2 of
 * these. */
#ifndef WEFT_BENCH_PLANETS_H
#define WEFT_BENCH_PLANETS_H

#include <math.h>

static double x[5][3] = {{0, 0, 0},
                         {4.84143144246472090, -1.16032004402742839, -1.03622044471123109e-1},
                         {8.34336671824457987, 4.12479856412430479, -4.03523417114321381e-1},
                         {1.28943695621391310e1, -1.51111514016986312e1, -2.23307578892655734e-1},
                         {1.53796971148509165e1, -2.59193146099879641e1, 1.79258772950371181e-1}};
static double v[5][3] = {{0, 0, 0},
                         {1.66007664274403694e-3, 7.69901118419740425e-3, -6.90460016972063023e-5},
                         {-2.76742510726411e-3, 4.99852801234917238e-3, 2.30417297573763929e-5},
                         {2.96460137564761618e-3, 2.37847173959480950e-3, -2.96589568540237556e-5},
                         {2.68067772490389322e-3, 1.62824170038242295e-3, -9.51592254519715870e-5}};
static double m[5] = {1.0, 9.54791938424326609e-4, 2.85885980666130812e-4, 4.36624404335156298e-5,
                      5.15138902046611451e-5};

static double energy(void) {
  double e = 0;
  for (int i = 0; i < 5; i++) {
    e += 0.5 * m[i] * (v[i][0] * v[i][0] + v[i][1] * v[i][1] + v[i][2] * v[i][2]);
    for (int j = i + 1; j < 5; j++) {
      double dx = x[i][0] - x[j][0], dy = x[i][1] - x[j][1], dz = x[i][2] - x[j][2];
      e -= m[i] * m[j] / sqrt(dx * dx + dy * dy + dz * dz);
    }
  }
  return e;
}

static void planets_begin(void) {
  double pi = 3.141592653589793;
  for (int i = 0; i < 5; i++) {
    m[i] *= 4 * pi * pi;
    for (int k = 0; k < 3; k++) v[i][k] *= 365.24;
  }
}

#endif
