import type { ButtonHTMLAttributes, ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import {
  formatCount,
  formatMicros,
  formatBalance,
  formatPercent,
  formatShortCount,
  formatCharge,
} from "../lib/money.ts";
import { nameWithoutAuthor } from "../lib/names.ts";
import { localAndUtcTime, relativeTime } from "../lib/time.ts";
import { useNow } from "../state/cell.ts";

/** A button that doesn't submit its form. */
export function Button({ text, ...attributes }: { text: string } & ButtonHTMLAttributes) {
  return (
    <button type="button" {...attributes}>
      {text}
    </button>
  );
}

type NoticeProps = { role?: "status" | "alert"; children: ComponentChildren };
export function Notice({ role = "status", children }: NoticeProps) {
  return (
    <p class="notice" role={role}>
      {children}
    </p>
  );
}

type CheckProps = {
  text: string;
  isOn: boolean;
  onChange: (isOn: boolean) => void;
  class?: string;
};
export function Checkbox({ text, isOn, onChange, class: name = "check" }: CheckProps) {
  return (
    <label class={name}>
      <input
        type="checkbox"
        checked={isOn}
        onChange={({ currentTarget }) => onChange(currentTarget.checked)}
      />{" "}
      {text}
    </label>
  );
}

export function Money({ micros, kind = "spent" }: { micros: number; kind?: "left" | "spent" }) {
  const text = kind === "left" ? formatBalance(micros) : formatCharge(micros);
  return (
    <span class="number" title={formatMicros(micros)}>
      {text}
    </span>
  );
}

export function Count({ count }: { count: number }) {
  return <span class="number">{formatCount(count)}</span>;
}

export function Tokens({ count }: { count: number }) {
  return (
    <span class="number" title={formatCount(count)}>
      {formatShortCount(count)}
    </span>
  );
}

/** A model's ID, without the author on small screens. */
export function ModelName({ id }: { id: string }) {
  const name = nameWithoutAuthor(id);
  return (
    <span title={id}>
      <span class="author">{id.slice(0, id.length - name.length)}</span>
      {name}
    </span>
  );
}

type TimeProps = { at: string | number | null; none?: string; withClock?: boolean };
export function Time({ at, none = "never", withClock = false }: TimeProps) {
  const current = useNow();
  if (at === null) return <span class="muted">{none}</span>;
  return (
    <time dateTime={new Date(at).toISOString()} title={localAndUtcTime(at)}>
      {relativeTime(at, currentTimeFor(at, current), withClock)}
    </time>
  );
}

/** Returns the current time, or a later past `at`. The page's clock updates only every 10 s. */
function currentTimeFor(at: string | number, current: number): number {
  const past = new Date(at).getTime();
  return past <= Date.now() ? Math.max(current, past) : Math.max(current, Date.now() - 10_000);
}

type BadgeProps = { tone?: "plain" | "good" | "warn" | "bad"; children: ComponentChildren };
export function Badge({ tone = "plain", children }: BadgeProps) {
  const shape = { plain: "", good: "●", warn: "▲", bad: "■" }[tone];
  return (
    <span class={`badge ${tone}`}>
      {shape !== "" && <span aria-hidden="true">{shape} </span>}
      {children}
    </span>
  );
}

type UsageBarProps = { used: number; held?: number; limit: number; label: string };
export function UsageBar({ used, held = 0, limit, label }: UsageBarProps) {
  const whole = limit > 0 ? used / limit : 1;
  const share = Math.min(1, whole);
  const heldShare = limit > 0 ? Math.min(1 - share, held / limit) : 0;
  return (
    <span class="meter">
      <span
        class="bar"
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(share * 100)}
        aria-valuetext={formatPercent(whole)}
      >
        <span class={`fill ${toneOf(share)}`} style={{ width: `${share * 100}%` }} />
        <span class="fill held" style={{ width: `${heldShare * 100}%` }} />
      </span>
      <span class="small muted">{label}</span>
    </span>
  );
}

function toneOf(share: number): string {
  if (share >= 1) return "bad";
  return share >= 0.8 ? "warn" : "";
}

type CopyButtonProps = {
  text: string;
  label?: string;
  onCopied?: () => void;
  /** Called if the browser blocks the clipboard. Then the whole text must be shown. */
  onBlocked?: () => void;
};
export function CopyButton({ text, label = "Copy", onCopied, onBlocked }: CopyButtonProps) {
  const [status, setStatus] = useState("");
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setStatus("Copied");
      onCopied?.();
    } catch {
      setStatus("Select and copy it");
      onBlocked?.();
    }
    timer.current = window.setTimeout(() => setStatus(""), 2000);
  };
  return (
    <Button
      text={status === "" ? label : status}
      class="quiet"
      onClick={() => void copy()}
      aria-live="polite"
    />
  );
}

export function CodeBlock({
  text,
  copied = text,
  label = "Text to copy",
  onCopied = () => undefined,
}: {
  text: string;
  copied?: string;
  label?: string;
  onCopied?: () => void;
}) {
  const [isBlocked, setBlocked] = useState(false);
  return (
    <div class="code">
      <pre tabIndex={0} aria-label={label}>
        <code>{isBlocked ? copied : text}</code>
      </pre>
      <CopyButton text={copied} onCopied={onCopied} onBlocked={() => setBlocked(true)} />
    </div>
  );
}

type PanelProps = { title: string; aside?: ComponentChildren; children: ComponentChildren };
export function Panel({ title, aside, children }: PanelProps) {
  return (
    <section class="panel">
      <header class="panel-head">
        <h2>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}

type PageHeadProps = { title: string; text?: ComponentChildren; children?: ComponentChildren };
export function PageHead({ title, text, children }: PageHeadProps) {
  return (
    <div class="page-head">
      <div>
        <h1>{title}</h1>
        {text !== undefined && <p class="muted">{text}</p>}
      </div>
      <div class="actions">{children}</div>
    </div>
  );
}

type FactsProps = {
  facts: readonly (readonly [name: string, what: ComponentChildren])[];
  inPanel?: boolean;
};
export function Facts({ facts, inPanel = false }: FactsProps) {
  return (
    <dl class={inPanel ? "facts panel" : "facts"}>
      {facts
        .filter(([, what]) => what !== null && what !== "")
        .map(([name, what]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{what}</dd>
          </div>
        ))}
    </dl>
  );
}

type TabsProps = {
  label: string;
  tabs: readonly (readonly [title: string, href: string])[];
  current: string;
};
export function Tabs({ label, tabs, current }: TabsProps) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(([title, href]) => (
        <a key={title} href={href} aria-current={title === current ? "page" : undefined}>
          {title}
        </a>
      ))}
    </nav>
  );
}
