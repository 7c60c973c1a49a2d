import type { Receipt } from "../api/undocumented.ts";
import { took } from "../lib/time.ts";
import { goTo } from "../state/route.ts";
import { useKeyNames } from "../state/spend.ts";
import { Money, Time, Tokens } from "./basics.tsx";
import type { Column } from "./table.tsx";

/** The columns of a list of requests. */
export function requestColumns(
  nameOfKey: (id: string | null) => string,
): readonly Column<Receipt>[] {
  return [
    {
      id: "time",
      title: "Time",
      value: (row) => row.created_at,
      cell: (row) => <Time at={row.created_at} />,
    },
    { id: "model", title: "Model", value: (row) => row.model },
    {
      id: "ended",
      title: "Ended",
      wide: true,
      value: (row) => row.finish_reason ?? "not finished",
    },
    {
      id: "in",
      title: "In",
      align: "right",
      wide: true,
      value: (row) => row.prompt_tokens,
      cell: (row) => <Tokens count={row.prompt_tokens} />,
    },
    {
      id: "out",
      title: "Out",
      align: "right",
      wide: true,
      value: (row) => row.completion_tokens,
      cell: (row) => <Tokens count={row.completion_tokens} />,
    },
    {
      id: "first_byte",
      title: "First byte",
      align: "right",
      wide: true,
      value: (row) => row.first_byte_ms,
      cell: (row) => (row.first_byte_ms === null ? "" : took(row.first_byte_ms)),
    },
    {
      id: "cost",
      title: "Cost",
      align: "right",
      value: (row) => row.cost_micro,
      cell: (row) => <Money micros={row.cost_micro} />,
    },
    { id: "key", title: "Key", wide: true, value: (row) => nameOfKey(row.key_id) },
    { id: "user", title: "End user", value: (row) => row.external_id },
  ];
}

/** A few requests, without sorting and filter; a row opens its receipt. */
export function RequestTable({ rows }: { rows: readonly Receipt[] }) {
  const columns = requestColumns(useKeyNames());
  return (
    <div class="table" role="region" aria-label="Newest requests" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map(({ id, title, align, wide }) => (
              <th key={id} scope="col" class={`${align ?? ""} ${wide ? "wide-only" : ""}`}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr
              key={row.id}
              class="opens"
              tabIndex={0}
              onClick={() => goTo(["requests", row.id])}
              onKeyDown={(event) => event.key === "Enter" && goTo(["requests", row.id])}
            >
              {columns.map(({ id, value, cell, align, wide }) => (
                <td key={id} class={`${align ?? ""} ${wide ? "wide-only" : ""}`}>
                  {cell ? cell(row) : value(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
