// Dates as Slack writes them, in the reader's own time zone.

const LOCALE = "en-US";
const HALF_YEAR_MS = 182 * 86_400_000;

let skewMs = 0;

/** Follow the server's clock: `serverMs` is its time of this moment. */
export function setNow(serverMs) {
  skewMs = serverMs - Date.now();
}

/** The server's time, in milliseconds. */
export function nowMs() {
  return Date.now() + skewMs;
}

/** A Slack message id ("1700000000.000100") as a Date. */
export function tsDate(ts) {
  return new Date(Number.parseFloat(ts) * 1000);
}

const format = (date, options) => date.toLocaleString(LOCALE, options);

/** "6:39 PM" */
export function clock(date) {
  return format(date, { hour: "numeric", minute: "2-digit" });
}

function ordinal(day) {
  if (day % 100 >= 11 && day % 100 <= 13) return `${day}th`;
  return `${day}${{ 1: "st", 2: "nd", 3: "rd" }[day % 10] ?? "th"}`;
}

function dayNumber(date) {
  return Math.round(new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime() / 86_400_000);
}

/** "Today", "Yesterday", "Tomorrow", or null for any other day. */
function nearDay(date) {
  const distance = dayNumber(date) - dayNumber(new Date(nowMs()));
  return { "-1": "Yesterday", 0: "Today", 1: "Tomorrow" }[distance] ?? null;
}

function year(date) {
  return Math.abs(date.getTime() - nowMs()) < HALF_YEAR_MS ? "" : `, ${date.getFullYear()}`;
}

function long(date) {
  return `${format(date, { month: "long" })} ${ordinal(date.getDate())}${year(date)}`;
}

function short(date) {
  return `${format(date, { month: "short", day: "numeric" })}${year(date)}`;
}

/** The heading above a day's messages: "Today" or "Tuesday, February 18th". */
export function dayHeading(date) {
  return nearDay(date) ?? weekday(date);
}

function weekday(date) {
  return `${format(date, { weekday: "long" })}, ${long(date)}`;
}

/** "today at 6:39 PM" or "Feb 18 at 6:39 PM", for the line under a thread's first message. */
export function lastReply(date) {
  return `${nearDay(date)?.toLowerCase() ?? short(date)} at ${clock(date)}`;
}

function ago(date) {
  const relative = new Intl.RelativeTimeFormat(LOCALE);
  const seconds = Math.round((date.getTime() - nowMs()) / 1000);
  const units = [
    ["day", 86_400],
    ["hour", 3600],
    ["minute", 60],
    ["second", 1],
  ];
  const [unit, size] = units.find(([, length]) => Math.abs(seconds) >= length) ?? ["second", 1];
  return relative.format(Math.trunc(seconds / size), unit);
}

function numeric(date) {
  const two = (part) => String(part).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** Slack: date formatting tokens of `<!date^…>` and of the rich text date element. */
const TOKENS = {
  ago,
  date: long,
  date_long: weekday,
  date_long_pretty: dayHeading,
  date_num: numeric,
  date_pretty: (date) => nearDay(date) ?? long(date),
  date_short: short,
  date_short_pretty: (date) => nearDay(date) ?? short(date),
  time: clock,
  time_secs: (date) => format(date, { hour: "numeric", minute: "2-digit", second: "2-digit" }),
};

/**
 * A Unix time (seconds) written out by a Slack format such as "{date_short_pretty} at {time}".
 * Returns null for a time or a token that Slack would answer with the fallback text.
 */
export function slackDate(unix, template) {
  const date = new Date(Number(unix) * 1000);
  if (!/^\d+$/.test(String(unix)) || Number.isNaN(date.getTime())) return null;
  const names = [...template.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
  if (!names.every((name) => Object.hasOwn(TOKENS, name))) return null;
  return template.replace(/\{(\w+)\}/g, (_, name) => TOKENS[name](date));
}
