import { useEffect, useRef, useState } from "preact/hooks";
import { csvOf } from "../lib/csv.ts";
import { formatCount } from "../lib/money.ts";
import type { Column } from "./table.tsx";
import { Button } from "./basics.tsx";

type Pages<T> = AsyncIterable<readonly T[]> | Iterable<readonly T[]>;

export function Export<T>({
  name,
  columns,
  rows,
}: {
  name: string;
  columns: readonly Column<T>[];
  rows: () => Pages<T>;
}) {
  const [count, setCount] = useState<number | null>(null);
  const [problem, setProblem] = useState("");
  const stopped = useRef(false);
  useEffect(() => () => void (stopped.current = true), []);
  const start = async (): Promise<void> => {
    stopped.current = false;
    setProblem("");
    setCount(0);
    const parts = columns.flatMap(
      ({ csv, title, value }) => csv ?? [[snakeCase(title), value] as const],
    );
    const lines = [parts.map(([heading]) => heading) as (string | number | boolean | null)[]];
    try {
      for await (const page of rows()) {
        if (stopped.current) break;
        for (const row of page) lines.push(parts.map(([, value]) => value(row)));
        setCount(lines.length - 1);
      }
      if (!stopped.current) {
        const text = ["\uFEFF", csvOf(lines)];
        const file = new Blob(text, { type: "text/csv;charset=utf-8" });
        downloadFile(`${name.toLowerCase().replaceAll(" ", "-")}.csv`, file);
      }
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
    setCount(null);
  };
  return (
    <span class="export">
      {problem !== "" && <span class="small bad-text">■ {problem}</span>}
      {count === null ? (
        <Button text="CSV" onClick={() => void start()} title="Export all filtered rows" />
      ) : (
        <Button
          text={`${formatCount(count)} rows, stop`}
          onClick={() => (stopped.current = true)}
        />
      )}
    </span>
  );
}

/** Returns a column's heading in CSV, such as `last_used`. */
function snakeCase(title: string): string {
  return title.toLowerCase().match(/\w+/g)?.join("_") ?? "";
}

export function downloadFile(name: string, file: Blob): void {
  const url = URL.createObjectURL(file);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
