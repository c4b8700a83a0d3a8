/* kernels_programs.h — programs about kernels: TRUE_PROGRAM(text) gives true, FAILING_PROGRAM(text, "kind:
 * message"). */

/* creation */
TRUE_PROGRAM("zeros((2, 3)).shape == (2, 3) and zeros(2).dtype == f64 and ones(3, dtype=i32).dtype == i32")
TRUE_PROGRAM("all(full((2, 2), 7) == 7) and full(2, true).dtype == bool and full((2, 3), [1, 2, 3])[1, 2] == 3")
TRUE_PROGRAM("array((1, 2.5)).dtype == f64 and array((true, 2)).dtype == i64 and array((f32(1), 2.5)).dtype == f32 and "
             "array(()).shape == (0,)")
TRUE_PROGRAM("array(((1, 2), (3, 4))).shape == (2, 2) and array(0..3).shape == (3,) and array(([1, 2], "
             "3..5)).shape == (2, 2)")
TRUE_PROGRAM("all(arange(5) == [0, 1, 2, 3, 4]) and all(arange(5, 0, -2) == [5, 3, 1]) and arange(0.0, 1.0, "
             "0.25).shape == (4,) and arange(3, 1).size == 0")
TRUE_PROGRAM("all(linspace(0, 1, 5) == [0.0, 0.25, 0.5, 0.75, 1.0]) and all(linspace(0, 1, 4, endpoint=false) == [0.0, "
             "0.25, 0.5, 0.75]) and linspace(2, 3, 1)[0] == 2")
TRUE_PROGRAM("all(abs(logspace(0, 2, 3) - [1, 10, 100]) < 1e-12)")
TRUE_PROGRAM("all(eye(2, 3, k=1) == [[0, 1, 0], [0, 0, 1]]) and all(eye(3, k=-2)[2] == [1, 0, 0]) and eye(0).size == 0")
TRUE_PROGRAM("all(diag([1, 2], k=1) == [[0, 1, 0], [0, 0, 2], [0, 0, 0]]) and all(diag([[1, 2], [3, 4]]) == [1, "
             "4]) and all(diag([[1, 2], [3, 4]], k=-1) == [3])")
TRUE_PROGRAM("all(tril([[1, 2], [3, 4]]) == [[1, 0], [3, 4]]) and all(triu([[1, 2], [3, 4]], k=1) == [[0, 2], [0, "
             "0]]) and tril(ones((2, 3, 4))).sum() == 12")
TRUE_PROGRAM("let g = meshgrid([1, 2, 3], [4, 5]); g[0].shape == (2, 3) and all(g[1][:, 0] == [4, 5]) and meshgrid([1, "
             "2], [3], indexing=\"ij\")[0].shape == (2, 1)")
TRUE_PROGRAM("zeros_like([1, 2]).dtype == i64 and all(full_like([1.5, 2.5], 3) == [3.0, 3.0]) and "
             "ones_like(2.5) == 1 and empty(3).sum() == 0")

/* views and joins */
TRUE_PROGRAM("let x = arange(6); x.reshape((2, -1)).shape == (2, 3) and all(x.reshape((2, 3)).T.reshape(6) == [0, 3, "
             "1, 4, 2, 5]) and x.reshape((2, 3)).ravel().shape == (6,)")
TRUE_PROGRAM("let x = arange(24).reshape((2, 3, 4)); transpose(x, (2, 0, 1)).shape == (4, 2, 3) and x.T.shape == (4, "
             "3, 2) and moveaxis(x, 0, -1).shape == (3, 4, 2) and swapaxes(x, 0, 2).shape == (4, 3, 2) and moveaxis(x, "
             "(0, 1), (2, 0))[1, 2, 0] == x[0, 1, 2]")
TRUE_PROGRAM("squeeze(ones((1, 3, 1))).shape == (3,) and squeeze(ones((1, 3, 1)), axis=0).shape == (3, 1) and "
             "expand_dims([1, 2], axis=-1).shape == (2, 1) and expand_dims([1, 2], axis=(0, 2)).shape == (1, 2, 1) and "
             "squeeze([[7]]) == 7")
TRUE_PROGRAM("all(flip([1, 2, 3]) == [3, 2, 1]) and all(flip([[1, 2], [3, 4]], axis=1) == [[2, 1], [4, 3]]) and "
             "flip(zeros((0, 3))).shape == (0, 3)")
TRUE_PROGRAM("broadcast_to([1, 2], (3, 2)).shape == (3, 2) and broadcast_arrays([1, 2], [[3], [4]])[0].shape == (2, "
             "2) and broadcast_to(5, (2,)).sum() == 10")
TRUE_PROGRAM("all(concat(([1, 2], [3.5])) == [1, 2, 3.5]) and concat((ones((2, 1)), zeros((2, 3))), "
             "axis=1).shape == (2, 4) and concat(([[1]], [2]), axis=nil).shape == (2,)")
TRUE_PROGRAM("stack(([1, 2], [3, 4]), axis=-1)[0, 1] == 3 and stack((1, 2.5, true)).dtype == f64 and "
             "stack(unstack([[1, 2], [3, 4]], axis=1))[1, 0] == 2")
TRUE_PROGRAM("let p = split(arange(6), 3); all(p[2] == [4, 5]) and all(p[1] == [2, 3]) and split(arange(6), (1, "
             "4))[2].shape == (2,) and split(arange(3), (5,))[1].size == 0")
TRUE_PROGRAM("all(tile([1, 2], 2) == [1, 2, 1, 2]) and tile([[1, 2]], (2, 1, 3)).shape == (2, 1, 6) and tile(3, "
             "2).shape == (2,)")
TRUE_PROGRAM("all(repeat([1, 2], 2) == [1, 1, 2, 2]) and all(repeat([1, 2], [0, 3]) == [2, 2, 2]) and repeat([[1, 2]], "
             "2, axis=0).shape == (2, 2)")
TRUE_PROGRAM("all(roll([1, 2, 3], 1) == [3, 1, 2]) and all(roll([1, 2, 3], -4) == [2, 3, 1]) and roll([[1, 2], [3, "
             "4]], 1, axis=(0, 1))[0, 0] == 4 and roll([[1, 2], [3, 4]], 1)[0, 0] == 4 and roll([], 3).size == 0")
TRUE_PROGRAM("all(pad([1, 2], 1) == [0, 1, 2, 0]) and all(pad([1, 2], (1, 2), value=9) == [9, 1, 2, 9, 9]) and "
             "pad([[1]], ((1, 0), (0, 2))).shape == (2, 3)")
TRUE_PROGRAM("all(pad([1, 2, 3], 2, mode=\"reflect\") == [3, 2, 1, 2, 3, 2, 1]) and all(pad([1, 2, 3], 2, "
             "mode=\"edge\") == [1, 1, 1, 2, 3, 3, 3]) and all(pad([1, 2, 3], 4, mode=\"wrap\") == [3, 1, 2, 3, 1, 2, "
             "3, 1, 2, 3, 1]) and all(pad([1, 2, 3], 4, mode=\"symmetric\") == [3, 3, 2, 1, 1, 2, 3, 3, 2, 1, 1])")
TRUE_PROGRAM("all(sliding_window([1, 2, 3, 4], 2) == [[1, 2], [2, 3], [3, 4]]) and sliding_window(ones((4, 5)), (2, "
             "3)).shape == (3, 3, 2, 3) and sliding_window(ones((4, 5)), 2, axis=1).shape == (4, 4, 2)")

/* reductions and scans */
TRUE_PROGRAM("sum([1, 2, 3]) == 6 and sum(u8([200, 100])) == 300 and sum([true, true]).dtype == i64 and "
             "sum([]) == 0 and prod([]) == 1 and sum(f32([0.5])).dtype == f32")
TRUE_PROGRAM("let x = arange(24).reshape((2, 3, 4)); all(sum(x, axis=(0, 2)) == [60, 92, 124]) and sum(x, "
             "axis=1, keepdims=true).shape == (2, 1, 4) and sum(x, axis=()).shape == (2, 3, 4) and all(sum(x.T, "
             "axis=-1) == sum(x, axis=0).T)")
TRUE_PROGRAM("isnan(max([1.0, nan, 3.0])) and max([1, 5, 2]) == 5 and min([[3, 1], [2, 4]], axis=1)[1] == 2 and "
             "max([false, true]) == true and signbit(min([0.0, -0.0])) and not signbit(max([-0.0, 0.0]))")
TRUE_PROGRAM("argmax([1, 3, 3]) == 1 and argmin([2.0, nan, 1.0]) == 1 and all(argmax([[1, 9], [8, 2]], axis=1) == [1, "
             "0]) and argmax([[1, 9], [8, 2]], axis=0, keepdims=true).shape == (1, 2)")
TRUE_PROGRAM("any([0, 0, 2]) and not any([]) and all([]) and not all([1, 0]) and any([nan]) and all(any([[true, "
             "false], [false, false]], axis=1) == [true, false]) and count_nonzero([0.0, nan, -0.0, 2]) == 2")
TRUE_PROGRAM("mean([1, 2]) == 1.5 and mean(f32([1, 2])).dtype == f32 and isnan(mean([])) and var([1.0, 3.0]) == 1 and "
             "var([1.0, 3.0], correction=1) == 2 and std([1, 3]) == 1 and all(var([[1, 3], [2, 2]], axis=1) == [1, 0])")
TRUE_PROGRAM("norm([3, 4]) == 5 and norm([3, -4], ord=1) == 7 and norm([3, -4], ord=inf) == 4 and norm([3, "
             "0], ord=0) == 1 and abs(norm([1, 2, 3], ord=3) - 36 ** (1 / 3)) < 1e-12 and norm([[3.0, 4.0]], "
             "axis=1).shape == (1,)")
TRUE_PROGRAM("abs(logsumexp([1000.0, 1000.0]) - 1000 - log(2.0)) < 1e-12 and logsumexp([-inf, -inf]) == -inf and "
             "logsumexp([[0.0]], axis=1).shape == (1,) and abs(sum(nn.softmax([1.0, 2, 3])) - 1) < 1e-15 and "
             "all(nn.log_softmax([0.0]) == [0.0])")
TRUE_PROGRAM("median([3, 1, 2]) == 2 and median([4.0, 1, 2, 3]) == 2.5 and isnan(median([1.0, nan])) and "
             "quantile([1.0, 2, 3, 4], 0.25) == 1.75 and quantile([1.0, 3], [0, 0.5, 1]).shape == (3,) and "
             "all(median([[1, 3], [5, 7]], axis=0) == [3, 5])")
TRUE_PROGRAM("all(cumsum([1, 2, 3]) == [1, 3, 6]) and all(cumsum([1, 2, 3], reverse=true) == [6, 5, 3]) and "
             "all(cumsum([1, 2], include_initial=true) == [0, 1, 3]) and all(cumsum([1, 2], include_initial=true, "
             "reverse=true) == [3, 2, 0]) and all(cumprod([[1, 2], [3, 4]], axis=0) == [[1, 2], [3, 8]])")
TRUE_PROGRAM("all(cummax([1, 3, 2]) == [1, 3, 3]) and all(isnan(cummin([1.0, nan, 0])) == [false, true, "
             "true]) and cummax([1.5], include_initial=true)[0] == -inf and all(diff([1, 4, 9], n=2) == [2]) and "
             "diff([1]).size == 0 and diff([[1, 2], [4, 8]], axis=0)[0, 1] == 6")

/* selecting */
TRUE_PROGRAM("all(take([5, 6, 7], [1, -1]) == [6, 7]) and take([[1, 2], [3, 4]], [1], axis=1).shape == (2, 1) and "
             "take([[1, 2], [3, 4]], 3) == 4 and take([1, 2], [[0, 1], [1, 0]], axis=0).shape == (2, 2)")
TRUE_PROGRAM("let x = [[3, 1, 2], [9, 7, 8]]; all(take_along_axis(x, argsort(x)) == sort(x)) and "
             "all(take_along_axis(x, [[1], [0]], axis=1) == [[1], [9]]) and take_along_axis(x, [[0, 1, 0]], "
             "axis=0).shape == (1, 3)")
TRUE_PROGRAM("all(compress([1, 2, 3], [true, false, true]) == [1, 3]) and all(compress([1, 2, 3], [true, false, true], "
             "size=4, fill=-1) == [1, 3, -1, -1]) and all(compress([1, 2, 3], [true, true, true], size=2) == [1, "
             "2]) and compress([[1, 2]], [false, true], axis=1).shape == (1, 1)")
TRUE_PROGRAM("let n = nonzero([[0, 1], [2, 0]]); all(n[0] == [0, 1]) and all(n[1] == [1, 0]) and "
             "nonzero([0])[0].size == 0 and nonzero(zeros((2, 0)))[1].size == 0")
TRUE_PROGRAM("all(one_hot([1, 0], 2) == [[0, 1], [1, 0]]) and one_hot([1, 0], 3, axis=0).shape == (3, 2) and "
             "one_hot(1, 2, dtype=i32).dtype == i32")
TRUE_PROGRAM("all(scatter([0, 0, 0], [2, 2, 0], [5, 6, 7]) == [7, 0, 6]) and all(scatter([0, 0, 0], [2, 2, -3], [5, "
             "6, 7], reduce=\"add\") == [7, 0, 11]) and all(scatter([1.0, 9.0], [0, 1], 5.0, reduce=\"max\") == [5, "
             "9]) and scatter(zeros((2, 3)), [1], ones((2, 1)), axis=1)[1, 1] == 1")
TRUE_PROGRAM("all(bincount([0, 1, 1, 4]) == [1, 2, 0, 0, 1]) and bincount([0, 1], weights=[0.5, 2.0])[1] == 2 and "
             "bincount([], minlength=3).shape == (3,)")
TRUE_PROGRAM("let h = histogram([1, 2, 3, 4], bins=2); all(h[0] == [2, 2]) and all(h[1] == [1.0, 2.5, 4.0]) and "
             "all(histogram([0.5, 9], bins=[0, 1, 2])[0] == [1, 0]) and histogram([1, 2], bins=1, range=(0, "
             "1))[0][0] == 1 and histogram([1.0, 2], bins=2, weights=[3, 4])[0][1] == 4")
TRUE_PROGRAM("let u = unique([3, 1, 3], return_index=true, return_inverse=true, return_counts=true); all(u[0] == [1, "
             "3]) and all(u[1] == [1, 0]) and all(u[2] == [1, 0, 1]) and all(u[3] == [1, 2]) and unique([nan, "
             "nan]).size == 2 and unique([[2, 1], [2, 1]], axis=0).shape == (1, 2) and unique([[1, 1, 2]], "
             "axis=1).shape == (1, 2)")
TRUE_PROGRAM("all(sort([3, 1, 2]) == [1, 2, 3]) and all(sort([3, 1, 2], descending=true) == [3, 2, 1]) and "
             "isnan(sort([nan, 1.0])[1]) and isnan(sort([nan, 1.0], descending=true)[1]) and all(argsort([2, 1, 2, "
             "1]) == [1, 3, 0, 2]) and all(argsort([2, 1, 2, 1], descending=true) == [0, 2, 1, 3]) and all(sort([[2, "
             "1], [0, 3]], axis=0) == [[0, 1], [2, 3]])")
TRUE_PROGRAM("sort((\"b\", \"a\", \"ab\")) == (\"a\", \"ab\", \"b\") and sort((3, 1, 2)) == (1, 2, 3) and sort((3, 1, "
             "2), key=x => -x) == (3, 2, 1) and all(argsort((\"b\", \"a\")) == [1, 0]) and all(argsort((nan, 1, 2.5), "
             "descending=true) == [2, 1, 0])")
TRUE_PROGRAM("let t = topk([1, 3, 2], 2); all(t[0] == [3, 2]) and all(t[1] == [1, 2]) and all(topk([1, 3, 2], 1, "
             "largest=false)[0] == [1]) and topk([[1, 2], [3, 4]], 1, axis=0)[0][0, 1] == 4")
TRUE_PROGRAM("searchsorted([1, 3, 3, 5], 3) == 1 and searchsorted([1, 3, 3, 5], 3, side=\"right\") == 3 and "
             "all(searchsorted([1.0, 2.0], [0, 1.5, 9, nan]) == [0, 1, 2, 2]) and all(isin([1, 2, 5], [2, "
             "5]) == [false, true, true]) and not isin(nan, [nan]) and all(isin([[1.5]], (1.5, 2)) == [[true]])")

/* matrices */
TRUE_PROGRAM("[1, 2] @ [3, 4] == 11 and ([[1, 2], [3, 4]] @ [1, 1]).shape == (2,) and ([1, 1] @ [[1, 2], [3, "
             "4]])[1] == 6 and (ones((5, 2, 3)) @ ones((3, 4))).shape == (5, 2, 4) and (ones((2, 0)) @ ones((0, "
             "3))).sum() == 0 and ([[true]] @ [[true]]).dtype == i64")
TRUE_PROGRAM("let a = arange(60.0).reshape((5, 12)); let b = arange(96.0).reshape((12, 8)); let s = sum(a[:, "
             ":, nil] * b[nil, :, :], axis=1); all(a @ b == s) and all((b.T @ a.T).T == s) and all(a[::-1, "
             "::2] @ b[::2, ::3] == sum(a[::-1, ::2][:, :, nil] * b[::2, ::3][nil, :, :], axis=1)) and "
             "all(i64(a) @ i64(b) == i64(s)) and all(f32(a) @ f32(b) == s)")
TRUE_PROGRAM("let a = arange(24).reshape((2, 3, 4)); let b = arange(40).reshape((2, 4, 5)); "
             "all(einsum(\"bij,bjk->bik\", a, b) == a @ b) and all(einsum(\"ij->ji\", a[0]) == a[0].T) and "
             "einsum(\"ii\", [[1, 2], [3, 4]]) == 5 and all(einsum(\"ii->i\", [[1, 2], [3, 4]]) == [1, 4]) and "
             "all(einsum(\"...ij->...ji\", a) == swapaxes(a, 1, 2)) and einsum(\"i,j,k->\", [1, 2], [3, 4], [5, "
             "6]) == 231")
TRUE_PROGRAM("dot([[1, 2], [3, 4]], [[5, 6], [7, 8]])[1, 0] == 43 and dot(2, [1, 2])[1] == 4 and vecdot([[1, 2], "
             "[3, 4]], [1, 1])[1] == 7 and vecdot(i32([1]), i32([2])).dtype == i32 and outer([1, 2], [3, 4])[1, "
             "0] == 6 and tensordot(ones((2, 3, 4)), ones((3, 4, 5))).shape == (2, 5) and tensordot(ones((2, 3)), "
             "ones((2, 3)), axes=((0, 1), (0, 1))) == 6 and tensordot([1, 2], [3, 4], axes=0).shape == (2, 2)")
TRUE_PROGRAM("let a = [[4.0, 1, 2], [1, 3, 0], [2, 0, 5]]; let (w, v) = linalg.eigh(a); max(abs(v @ diag(w) "
             "@ v.T - a)) < 1e-12 and all(diff(w) > 0) and max(abs(linalg.eigvalsh(a) - w)) < 1e-12 and "
             "max(abs(linalg.cholesky(a) @ linalg.cholesky(a).T - a)) < 1e-12 and max(abs(linalg.cholesky(a, "
             "upper=true) - linalg.cholesky(a).T)) < 1e-12")
TRUE_PROGRAM("let a = [[4.0, 1, 2], [1, 3, 7]]; let (q, r) = linalg.qr(a.T); max(abs(q @ r - a.T)) < 1e-12 and "
             "q.shape == (3, 2) and linalg.qr(a.T, mode=\"complete\")[0].shape == (3, 3) and r[1, 0] == 0 and "
             "max(abs(q.T @ q - eye(2))) < 1e-12 and linalg.qr(a)[1].shape == (2, 3)")
TRUE_PROGRAM("let a = [[4.0, 1, 2], [1, 3, 7]]; let (u, s, vh) = linalg.svd(a, full_matrices=false); max(abs(u "
             "@ diag(s) @ vh - a)) < 1e-12 and linalg.svd(a)[2].shape == (3, 3) and max(abs(linalg.svdvals(a) - "
             "s)) < 1e-12 and max(abs(a @ linalg.pinv(a) - eye(2))) < 1e-12 and linalg.matrix_rank(a) == 2 and "
             "linalg.matrix_rank(ones((3, 3))) == 1 and abs(linalg.matrix_norm(a, ord=2) - s[0]) < 1e-12")
TRUE_PROGRAM("let a = [[4.0, 1], [1, 3]]; max(abs(a @ linalg.inv(a) - eye(2))) < 1e-12 and abs(linalg.det(a) - "
             "11) < 1e-12 and max(abs(a @ linalg.solve(a, [1, 2]) - [1, 2])) < 1e-12 and linalg.solve(stack((a, "
             "a)), ones((2, 2, 3))).shape == (2, 2, 3) and abs(linalg.slogdet(-a)[1] - log(11.0)) < 1e-12 and "
             "linalg.slogdet([[0.0, 1], [1, 0]])[0] == -1 and linalg.det([[1, 2], [2, 4]]) == 0")
TRUE_PROGRAM("let a = [[1.0, 1], [1, 2], [1, 3]]; max(abs(linalg.lstsq(a, [1, 2, 3]) - [0, 1])) < 1e-12 and "
             "all(linalg.matrix_power([[1, 1], [0, 1]], 5) == [[1, 5], [0, 1]]) and all(linalg.matrix_power([[1, 1], "
             "[0, 1]], 0) == eye(2)) and linalg.trace([[1, 2], [3, 4]]) == 5 and all(linalg.diagonal([[1, 2], [3, 4]], "
             "offset=1) == [2])")
TRUE_PROGRAM("all(linalg.kron([1, 2], [1, 1]) == [1, 1, 2, 2]) and linalg.kron(eye(2), ones((2, 3))).shape == (4, "
             "6) and all(linalg.cross([1, 0, 0], [0, 1, 0]) == [0, 0, 1]) and linalg.matrix_norm([[3.0, 4], [0, "
             "0]]) == 5 and linalg.matrix_norm([[1.0, -2], [3, 4]], ord=1) == 6 and linalg.matrix_norm([[1.0, -2], [3, "
             "4]], ord=inf) == 7 and abs(linalg.matrix_norm(eye(3), ord=\"nuc\") - 3) < 1e-12")
TRUE_PROGRAM("abs(gelu(1.0) - 0.8413447460685429) < 1e-15 and abs(gelu(1.0, approximate=true) - 0.8411919906082768) < "
             "1e-15 and gelu(f32([0.0])).dtype == f32 and relu(-3) == 0 and abs(nn.cross_entropy([[1.0, 2.0], [0.0, "
             "0.0]], [1, 0]) - (0.3132616875182228 + log(2.0)) / 2) < 1e-14 and max(abs(nn.layer_norm([1.0, 2, 3], "
             "eps=0) - [-1.224744871391589, 0, 1.224744871391589])) < 1e-14")

/* what each slip is told */
FAILING_PROGRAM("zeros((3, 4)) @ zeros((5, 2))", "shape: matmul: shapes (3, 4) and (5, 2) do not align: "
                                                 "axis 1 of the first is 4, axis 0 of the second is 5")
FAILING_PROGRAM("[1, 2] + [1, 2, 3]", "shape: add: shapes (2,) and (3,) do not broadcast: axis -1 is 2 and 3")
FAILING_PROGRAM("sum((1, 2))", "type: sum: x is a list, needs an array; array(…) makes one")
FAILING_PROGRAM("sin(0..3)", "type: sin: x is a range, needs an array; arange(…) makes one")
FAILING_PROGRAM("exp(\"a\")", "type: exp: x must be an array, got text")
FAILING_PROGRAM("sum([1, 2], axis=1)", "index: sum: axis 1 is out of range for rank 1")
FAILING_PROGRAM("sum([[1]], axis=(0, 0))", "value: sum: axis 0 is given twice")
FAILING_PROGRAM("sum([1], axis=1.5)", "type: sum: axis must be an integer or a list of integers, got f64 1.5")
FAILING_PROGRAM("max([])", "value: max: shape (0,) has no elements to choose from")
FAILING_PROGRAM("min(1, 2)", "type: min: the second argument is an axis; minimum(a, b) compares two values")
FAILING_PROGRAM("max([1], [2])", "type: max: the second argument is an axis; maximum(a, b) compares two values")
FAILING_PROGRAM("where([true])",
                "type: where: needs a condition and two values; nonzero(c) gives the indices where c is true")
FAILING_PROGRAM("u8([1]) + 300", "value: add: the number 300 does not fit u8")
FAILING_PROGRAM("1.5 & 2", "dtype: bitwise_and: needs integers or bools, got f64")
FAILING_PROGRAM("[1] // [0]", "zero_division: floor_divide: an integer divided by zero")
FAILING_PROGRAM("[2] ** -1", "value: power: an integer to a negative power; a float base has one")
FAILING_PROGRAM("i32([1.0, 3e9])", "value: i32: a f64 that is NaN or out of range does not fit i32")
FAILING_PROGRAM("f64(\"3\")", "type: f64: text is no number; parse_float(…) or parse_int(…) reads one")
FAILING_PROGRAM("reshape(arange(6), (-1, 4))",
                "shape: reshape: shape (6,) cannot become (-1, 4): the number of elements differs")
FAILING_PROGRAM("concat(([1, 2], [[3]]))",
                "shape: concat: shapes (2,) and (1, 1) (item 1) differ on another axis than 0")
FAILING_PROGRAM("stack(([1, 2], [3]))", "shape: stack: shapes (2,) and (1,) (item 1) differ")
FAILING_PROGRAM("array((1, (2, 3)))", "shape: array: items of shapes () and (2,) … do not stack")
FAILING_PROGRAM("array((1, \"a\"))", "type: array: items are numbers, got text; a list (…) holds any values, "
                "map(parse_float, xs) reads numbers")
FAILING_PROGRAM("take([5, 6], 3)", "index: take: index 3 is out of bounds for axis 0 of size 2")
FAILING_PROGRAM("take([5, 6], [0.5])", "type: take: indices must be integers, got an array of f64 and shape (1,)")
FAILING_PROGRAM("one_hot([3], 3)", "index: one_hot: 3 is out of bounds for 3 classes")
FAILING_PROGRAM("compress([1, 2], [true])", "shape: compress: the mask has shape (1,), axis 0 of x has the size 2")
FAILING_PROGRAM("zeros((2, -1))", "value: zeros: shape has the size -1, needs 0 or more")
FAILING_PROGRAM("arange(0, 1, 0)", "value: arange: step is 0")
FAILING_PROGRAM("searchsorted([1], 2, side=\"middle\")",
                "value: searchsorted: side must be \"left\" or \"right\", got \"middle\"")
FAILING_PROGRAM("linalg.inv([[1.0, 2.0]])", "shape: linalg.inv: needs square matrices, got shape (1, 2)")
FAILING_PROGRAM("linalg.solve([[0.0]], [1.0])", "value: linalg.solve: the matrix is singular")
FAILING_PROGRAM("linalg.cholesky([[-1.0]])", "value: linalg.cholesky: the matrix is not positive definite")
FAILING_PROGRAM("einsum(\"ij,jk\", ones((2, 3)), ones((4, 5)))",
                "shape: einsum: label j is 3 and 4 (axis 0 of operand 1)")
FAILING_PROGRAM("einsum(\"ij\", [1])", "shape: einsum: operand 0 has shape (1,), the spec gives it 2 labels")
FAILING_PROGRAM("to([1], \"gpu\")", "unsupported: to: not supported: there is no device \"gpu\" here")
FAILING_PROGRAM("quantile([1.0], 2)", "value: quantile: q holds 2, needs 0 to 1")
FAILING_PROGRAM("broadcast_to([1], (4611686018427387904, 4))",
                "value: broadcast_to: shape (4611686018427387904, 4) has too many elements")
