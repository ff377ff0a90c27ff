package window

// maxEdits bounds the search for a common subsequence: contents that need more insertions and removals than this to
// become what ADK would build are matched as far as the search got.
const maxEdits = 256

// common calls pair for each member of a longest common subsequence of two sequences of lengths n and m (E. Myers, "An
// O(ND) difference algorithm and its variations", 1986). Time is linear in n+m for a bounded number of edits.
func common(n, m int, same func(i, j int) bool, pair func(i, j int)) {
	// reach[k+offset] is how far into the first sequence a path on diagonal k (i-j) got; trace keeps it for each edit.
	var trace [][]int32
	offset := maxEdits + 1
	reach := make([]int32, 2*offset+1)
	bestK, edits := 0, 0
search:
	for d := 0; d <= maxEdits; d++ {
		edits = d
		best := -1
		for k := -d; k <= d; k += 2 {
			i := 0
			switch {
			case d == 0:
			case k == -d || k != d && reach[offset+k-1] < reach[offset+k+1]:
				i = int(reach[offset+k+1])
			default:
				i = int(reach[offset+k-1]) + 1
			}
			j := i - k
			for i < n && j < m && j >= 0 && same(i, j) {
				i, j = i+1, j+1
			}
			reach[offset+k] = int32(i)
			if i <= n && j <= m && i+j > best {
				bestK, best = k, i+j
			}
			if i >= n && j >= m {
				bestK = k
				trace = append(trace, append([]int32(nil), reach[offset-d-1:offset+d+2]...))
				break search
			}
		}
		trace = append(trace, append([]int32(nil), reach[offset-d-1:offset+d+2]...))
	}
	k := bestK
	at := func(d, k int) int { return int(trace[d][k+d+1]) }
	i := at(edits, k)
	for d := edits; d >= 0; d-- {
		start := 0 // where this diagonal's run of equal members began
		prev := k
		if d > 0 {
			if k == -d || k != d && at(d-1, k-1) < at(d-1, k+1) {
				prev = k + 1
				start = at(d-1, prev)
			} else {
				prev = k - 1
				start = at(d-1, prev) + 1
			}
		}
		for i > start {
			i--
			pair(i, i-k)
		}
		if d > 0 {
			i = at(d-1, prev)
			k = prev
		}
	}
}
