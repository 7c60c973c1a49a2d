const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** A moment as people say it: relative within a day, else its date in the reader's zone, `withClock` to the minute. */
export function when(time: string | number, now: number, withClock = false): string {
  const at = new Date(time);
  const past = now - at.getTime();
  const size = Math.abs(past);
  if (size < 5 * SECOND) return "just now";
  if (size < DAY) return past > 0 ? `${duration(size)} ago` : `in ${duration(size)}`;
  const sameYear = at.getFullYear() === new Date(now).getFullYear();
  return at.toLocaleString("en-GB", {
    day: "numeric",
    month: "short",
    ...(!sameYear && { year: "numeric" }),
    ...(withClock && { hour: "2-digit", minute: "2-digit" }),
  });
}

/** How long, in one unit: `35 s`, `12 min`, `3 h`, `4 days`. */
export function duration(ms: number): string {
  if (ms < MINUTE) return `${Math.max(1, Math.floor(ms / SECOND))} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)} h`;
  const days = Math.floor(ms / DAY);
  return days === 1 ? "1 day" : `${days} days`;
}

/** Milliseconds of a request: `85 ms`, `1.2 s`, `2 min`. */
export function took(ms: number): string {
  if (ms < SECOND) return `${Math.round(ms)} ms`;
  if (ms < MINUTE) return `${(ms / SECOND).toFixed(ms < 10 * SECOND ? 2 : 1)} s`;
  return duration(ms);
}

/** The moment to the second, in the reader's zone and in UTC. */
export function exactly(time: string | number): string {
  const at = new Date(time);
  const local = at.toLocaleString("sv-SE");
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const utc = `${at.toISOString().slice(0, 19).replace("T", " ")} UTC`;
  return zone === "UTC" ? utc : `${local} ${zone}\n${utc}`;
}

/** A moment as a field for dates takes it: `2026-11-22T18:05`, in the reader's zone. */
export function localMinute(time: string | number): string {
  return new Date(time).toLocaleString("sv-SE").slice(0, 16).replace(" ", "T");
}

/** The UTC day of a moment: `2026-11-22`. */
export function utcDay(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

/** The UTC days from `from` to `to`, both included; at most 400. */
export function daysBetween(from: string, to: string): string[] {
  const days: string[] = [];
  for (let at = Date.parse(from); at <= Date.parse(to) && days.length < 400; at += DAY) {
    days.push(utcDay(at));
  }
  return days;
}

/** The UTC hours of these days, the one that is not begun left out: `2026-11-22T14`. */
export function hoursBetween(from: string, to: string, now: number): string[] {
  const hours: string[] = [];
  const end = to.includes("T") ? hourStart(to) : Date.parse(to) + DAY - HOUR;
  for (let at = hourStart(from); at <= Math.min(end, now) && hours.length < 72; at += HOUR) {
    hours.push(new Date(at).toISOString().slice(0, 13));
  }
  return hours;
}

/** When a UTC day or hour begins, Unix ms. */
export function hourStart(text: string): number {
  return Date.parse(text.includes("T") ? `${text}:00Z` : text);
}

/** A UTC day or hour as a chart names it: `22 Nov`, `14:00`. */
export function dayName(day: string): string {
  if (day.includes("T")) return `${day.slice(11)}:00`;
  return new Date(day).toLocaleDateString("en-GB", {
    day: "numeric",
    month: "short",
    timeZone: "UTC",
  });
}

/** The first day of the UTC month that lies `months` before the day's own. */
export function monthStart(day: string, months = 0): string {
  const [year = 0, month = 1] = day.split("-").map(Number);
  return utcDay(Date.UTC(year, month - 1 - months, 1));
}
