// Package column turns recordings round: a recording is time-major, poll after poll,
// each with the samples that changed; a table is series-major, series after series,
// each with its polls. A target too big for memory is read several times.
//
//	for src := (column.Source{...}); !src.Done; {
//		batch, err := src.Collect(ctx, budget)
//		for series := batch.From; series < batch.To; series++ {
//			for r.Open(batch, samples); r.Next(); {
//				batch.Times[r.Poll] // and r.Cursors
//			}
//		}
//	}
package column
