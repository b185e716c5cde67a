/** Formats times, durations, counts and sentences for the terminal and for explanations in the operator API. Pure. */

export function shortenText(text: string, maxLength: number): string {
  const characters = [...text];
  return characters.length <= maxLength ? text : `${characters.slice(0, maxLength - 1).join('')}…`;
}

/** Formats a time as `2030-12-31 18:00:00Z`, in UTC and whole seconds. */
export function formatTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')}Z`;
}

export function formatTimeOr(ms: number | null, defaultText: string): string {
  return ms === null ? defaultText : formatTime(ms);
}

/** Below one second in milliseconds. */
export function formatDuration(ms: number): string {
  return ms < 1_000 ? `${ms} ms` : formatSpan(ms);
}

/** Formats a duration in its two largest units, for example `2 d 3 h`, `4 min 10 s` or `0 s`. */
export function formatSpan(ms: number): string {
  const seconds = Math.round(Math.abs(ms) / 1000);
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ] as const;
  const firstUnitIndex = parts.findIndex(([count]) => count > 0);
  if (firstUnitIndex === -1) return '0 s';
  return parts
    .slice(firstUnitIndex, firstUnitIndex + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ');
}

export function toSentence(text: string): string {
  return ['.', '?', '!'].some((punctuation) => text.endsWith(punctuation)) ? text : `${text}.`;
}

/** Formats a count as `1,000,000`, independent of the locale of the machine. */
export function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}
