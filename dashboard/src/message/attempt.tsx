/** One delivery attempt: next hop, stage, TLS version, duration, and the SMTP transcript with the time of each line. */
import type { AttemptDetails as Attempt } from '../../../src/operations/message-details.ts';
import { toPrintable } from '../../../src/printing/escape.ts';
import { formatCount } from '../parts/number';
import { formatDuration } from '../parts/time';

interface AttemptDetailsProps {
  readonly attempt: Attempt;
  /** The cause of the failure, or null. */
  readonly category: string | null;
  /** False without further routes. */
  readonly showsRoute: boolean;
}

/** Shows the facts of an attempt in one line, why it took its route, and its transcript. */
export function AttemptDetails({ attempt, category, showsRoute }: AttemptDetailsProps) {
  const { route, because, nextHop, stage, durationMs, outcome, transcript } = attempt;
  const facts = [
    // The capture transport has no next hop.
    nextHop ?? (outcome === 'delivered' ? null : 'no connection'),
    outcome === 'delivered' ? null : `at ${stage}`,
    findTlsVersion(transcript),
    formatDuration(durationMs),
  ];
  return (
    <>
      <div className="timeline-facts">
        {category === null ? null : <span className="category">{category}</span>}
        {showsRoute ? (
          <span>
            route <b>{route}</b> ·
          </span>
        ) : null}
        {facts.filter((fact) => fact !== null).join(' · ')}
      </div>
      {because === null ? null : (
        <div className="timeline-facts">
          <bdi>because {toPrintable(because)}</bdi>
        </div>
      )}
      <Transcript attempt={attempt} />
    </>
  );
}

function Transcript({ attempt: { transcript, transcriptOffsetsMs, durationMs } }: { readonly attempt: Attempt }) {
  if (transcript.length === 0) return null;
  const lines = transcript.map((line, index) => ({
    index,
    line,
    kind: getLineKind(line),
    offset: transcriptOffsetsMs?.[index] ?? null,
  }));
  return (
    <details className="transcript-box">
      <summary>
        SMTP transcript · {formatCount(transcript.length, 'line')} · {formatDuration(durationMs)}
      </summary>
      <div className="transcript">
        {lines.map(({ index, line, kind, offset }) => (
          <div key={index} className={`transcript-row ${kind}`}>
            {transcriptOffsetsMs === null ? null : (
              <span className="transcript-offset">{formatOffset(offset, index === 0)}</span>
            )}
            <span className="transcript-line">{line}</span>
          </div>
        ))}
      </div>
      {transcriptOffsetsMs === null ? (
        <p className="transcript-note">The time of each line was not recorded for this attempt.</p>
      ) : null}
    </details>
  );
}

/** Formats the time of a line as an offset from the start of the attempt. Only the first line has the unit. */
function formatOffset(offsetMs: number | null, withUnit: boolean): string {
  return offsetMs === null ? '' : `+${offsetMs}${withUnit ? ' ms' : ''}`;
}

/** Returns the kind of a line. A line without `C:` or `S:` is a note, such as the start of TLS. */
function getLineKind(line: string): 'client' | 'server' | 'secured' | 'remark' {
  if (line.startsWith('C:')) return 'client';
  if (line.startsWith('S:')) return 'server';
  return line.includes(', TLSv') ? 'secured' : 'remark';
}

/** Returns the TLS version of the connection, such as `TLSv1.3`, or null. */
function findTlsVersion(transcript: readonly string[]): string | null {
  const line = transcript.find((candidate) => getLineKind(candidate) === 'secured') ?? '';
  return /, (TLSv[\d.]+)/.exec(line)?.[1] ?? null;
}
