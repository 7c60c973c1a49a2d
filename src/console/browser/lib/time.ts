const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
export const DAY_MS = 24 * HOUR;

/** Formats a time relative to now, or as a local date if more than a day away. */
export function relativeTime(time: string | number, now: number, withClock = false): string {
  const at = new Date(time);
  const past = now - at.getTime();
  const size = Math.abs(past);
  if (size < 5 * SECOND) return "just now";
  if (size < DAY_MS) {
    return past > 0
      ? `${formatDurationInWholeUnits(size)} ago`
      : `in ${formatDurationInWholeUnits(size)}`;
  }
  const sameYear = at.getFullYear() === new Date(now).getFullYear();
  return at.toLocaleString("en-GB", {
    day: "numeric",
    month: "short",
    ...(!sameYear && { year: "numeric" }),
    ...(withClock && { hour: "2-digit", minute: "2-digit" }),
  });
}

export function formatDurationInWholeUnits(ms: number): string {
  if (ms < MINUTE) return `${Math.max(1, Math.floor(ms / SECOND))} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < DAY_MS) return `${Math.floor(ms / HOUR)} h`;
  const days = Math.floor(ms / DAY_MS);
  return days === 1 ? "1 day" : `${days} days`;
}

export function formatDuration(ms: number): string {
  if (ms < SECOND) return `${Math.round(ms)} ms`;
  if (ms < MINUTE) return `${(ms / SECOND).toFixed(ms < 10 * SECOND ? 2 : 1)} s`;
  return formatDurationInWholeUnits(ms);
}

export function localAndUtcTime(time: string | number): string {
  const at = new Date(time);
  const local = at.toLocaleString("sv-SE");
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const utc = `${at.toISOString().slice(0, 19).replace("T", " ")} UTC`;
  return zone === "UTC" ? utc : `${local} ${zone}\n${utc}`;
}

/** Formats a time in UTC: `1 Dec, 00:00 UTC`. */
export function utcText(time: string | number): string {
  const text = new Date(time).toLocaleString("en-GB", {
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
    timeZone: "UTC",
  });
  return `${text} UTC`;
}

export function formatLocalMinute(time: string | number): string {
  return new Date(time).toLocaleString("sv-SE").slice(0, 16).replace(" ", "T");
}

export function utcDay(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

export function daysBetween(from: string, to: string): string[] {
  const days: string[] = [];
  for (let at = Date.parse(from); at <= Date.parse(to) && days.length < 400; at += DAY_MS) {
    days.push(utcDay(at));
  }
  return days;
}

/** Returns the UTC hours of a period up to now, such as `2026-11-22T14`. */
export function hoursBetween(from: string, to: string, now: number): string[] {
  const hours: string[] = [];
  const end = to.includes("T") ? parseDayOrHour(to) : Date.parse(to) + DAY_MS - HOUR;
  for (let at = parseDayOrHour(from); at <= Math.min(end, now) && hours.length < 72; at += HOUR) {
    hours.push(new Date(at).toISOString().slice(0, 13));
  }
  return hours;
}

/** Parses a UTC day or hour to its start in Unix ms. */
export function parseDayOrHour(text: string): number {
  return Date.parse(text.includes("T") ? `${text}:00Z` : text);
}

export function dayName(day: string): string {
  if (day.includes("T")) return `${day.slice(11)}:00`;
  return new Date(day).toLocaleDateString("en-GB", {
    day: "numeric",
    month: "short",
    timeZone: "UTC",
  });
}

/** Returns the first day of the day's month, or of the month `months` earlier. */
export function monthStart(day: string, months = 0): string {
  const [year = 0, month = 1] = day.split("-").map(Number);
  return utcDay(Date.UTC(year, month - 1 - months, 1));
}

/** Returns the next UTC day (YYYY-MM-DD). Returns other text unchanged. */
export function dayAfter(day: string): string {
  const ms = Date.parse(day);
  return Number.isNaN(ms) ? day : utcDay(ms + DAY_MS);
}
