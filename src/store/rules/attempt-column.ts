/**
 * Maps a delivery attempt to the JSON of the column `attempt` of `event`, and back. The names of the members must not
 * change, because columns that earlier versions wrote contain these names.
 */
import type { Attempt } from '../../model/outcome.ts';

/** The content of the column `attempt` of `event`. Its member `conversation` is the SMTP transcript. */
export type AttemptColumn = Omit<Attempt, 'transcript'> & { readonly conversation: readonly string[] };

/** Converts the parsed content of the column to a delivery attempt. */
export function toAttempt({ outcome, startedAt, tookMs, remote, conversation, lineOffsetsMs }: AttemptColumn): Attempt {
  const attempt = { outcome, startedAt, tookMs, remote, transcript: conversation };
  return lineOffsetsMs === undefined ? attempt : { ...attempt, lineOffsetsMs };
}

/** Returns the value of the column `attempt` of `event`. */
export function toAttemptColumn(attempt: Attempt | null): string | null {
  if (attempt === null) return null;
  const { outcome, startedAt, tookMs, remote, transcript, lineOffsetsMs } = attempt;
  const column: AttemptColumn = { outcome, startedAt, tookMs, remote, conversation: transcript };
  return JSON.stringify(lineOffsetsMs === undefined ? column : { ...column, lineOffsetsMs });
}
