/** The findings of `doctor`: failures first, each with its remedy. */
import type { Findings } from '../../../src/operations/doctor.ts';
import { Card } from '../parts/card';
import { formatCount } from '../parts/number';
import { Remedy } from '../parts/remedy';
import { StatusBadge, type Tone } from '../parts/status-badge';
import { TextWithCode } from '../parts/text-with-code';

type Finding = Findings[number];

const GROUPS: readonly {
  readonly result: Finding['result'];
  readonly tone: Tone;
  readonly singular: string;
  readonly plural: string;
}[] = [
  { result: 'failure', tone: 'error', singular: 'check failed', plural: 'checks failed' },
  { result: 'warning', tone: 'warning', singular: 'warning', plural: 'warnings' },
  { result: 'ok', tone: 'success', singular: 'check passed', plural: 'checks passed' },
];

export function FindingList({ findings }: { readonly findings: Findings }) {
  return (
    <div className="stack">
      {GROUPS.map(({ result, tone, singular, plural }) => {
        // One check may have several findings, so the key includes the index.
        const group = findings
          .filter((finding) => finding.result === result)
          .map((finding, index) => ({ finding, key: `${index} ${finding.check}` }));
        if (group.length === 0) return null;
        return (
          <Card key={result} title={formatCount(group.length, singular, plural)} flush>
            <ul className="findings">
              {group.map(({ finding, key }) => (
                <FindingRow key={key} finding={finding} tone={tone} />
              ))}
            </ul>
          </Card>
        );
      })}
    </div>
  );
}

function FindingRow({
  finding: { check, result, detail, remedy },
  tone,
}: {
  readonly finding: Finding;
  readonly tone: Tone;
}) {
  return (
    <li className="finding">
      <StatusBadge tone={tone}>{result}</StatusBadge>
      <b className="badge-word wrap">{check}</b>
      <div className="wrap">
        <TextWithCode text={detail} />
        {remedy === null ? null : <Remedy text={remedy} />}
      </div>
    </li>
  );
}
