/** The findings of `doctor`: failures first, each with its remedy. */
import { Paper, Stack, Text, Title } from '@mantine/core';
import type { Findings } from '../../../src/operations/doctor/schemas.ts';
import { formatCount } from '../parts/number';
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
    <Stack gap="lg">
      {GROUPS.map(({ result, tone, singular, plural }) => {
        // One check may have several findings, so the key includes the index.
        const group = findings
          .filter((finding) => finding.result === result)
          .map((finding, at) => ({ finding, key: `${at} ${finding.check}` }));
        if (group.length === 0) return null;
        const id = `findings-${result}`;
        return (
          <section key={result} aria-labelledby={id}>
            <Title order={2} size="h4" mb="xs" id={id}>
              {formatCount(group.length, singular, plural)}
            </Title>
            <Paper withBorder component="ul" className="findings">
              {group.map(({ finding, key }) => (
                <FindingRow key={key} finding={finding} tone={tone} />
              ))}
            </Paper>
          </section>
        );
      })}
    </Stack>
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
    <li className="marked long">
      <StatusBadge tone={tone}>{result}</StatusBadge>
      <div>
        <Text size="sm" fw={600} className="wrap">
          {check}
        </Text>
        <Text size="sm" className="wrap">
          <TextWithCode text={detail} />
        </Text>
        {remedy === null ? null : (
          <Text size="sm" c="dimmed" className="wrap">
            → <TextWithCode text={remedy} />
          </Text>
        )}
      </div>
    </li>
  );
}
