# Writes the Parquet files of this folder with pyarrow, as pandas, polars and the
# Hugging Face hub write theirs.
import pyarrow as pa, pyarrow.parquet as pq

nq = pa.table({
    "id": [f"test_{i}" for i in range(300)],
    "question": [f"when was number {i} made?" for i in range(300)],
    "golden_answers": [[str(1900 + i % 7), f"in {1900 + i % 7}"] if i % 5 else [] for i in range(300)],
    "score": pa.array([None if i % 3 else i / 2 for i in range(300)], pa.float64()),
})
for codec in ["none", "snappy", "gzip", "zstd"]:
    pq.write_table(nq, f"nq-{codec}.parquet", compression=codec, row_group_size=128)
pq.write_table(nq, "nq-v2.parquet", compression="snappy", data_page_version="2.0", data_page_size=512, use_dictionary=False)

pq.write_table(pa.table({
    "data_source": ["nq", "nq"],
    "prompt": [[{"role": "user", "content": "Answer: when?"}], [{"role": "system", "content": "s"}, {"role": "user", "content": "Answer: who?"}]],
    "reward_model": [{"ground_truth": {"target": ["1964"]}, "style": "rule"}, {"ground_truth": {"target": ["Ann", "Anna"]}, "style": "rule"}],
    "extra_info": [{"index": 0, "split": "test"}, {"index": 1, "split": "test"}],
}), "search-r1.parquet")

pq.write_table(pa.table({
    "id": ["5a8b", "5a8c"], "question": ["Who?", "Ünïcode 问题?"], "answer": ["He", None],
    "supporting_facts": [{"title": ["A", "B"], "sent_id": [0, 1]}, {"title": [], "sent_id": []}],
    "context": [{"title": ["A"], "sentences": [["x", "y"]]}, {"title": [], "sentences": []}],
}), "hotpotqa.parquet", compression="gzip")

# A bomb: 2 kB that say of one long text that it stands in 100 000 rows.
pq.write_table(pa.table({
    "question": pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), pa.array(["a" * 500_000])),
}), "bomb/text.parquet", compression="zstd", dictionary_pagesize_limit=1 << 20)
