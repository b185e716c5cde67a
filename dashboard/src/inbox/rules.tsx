/**
 * The rules of the inbox. Each rule answers the next delivery attempts to an address or a domain. A row shows the
 * answer, the effect of the answer, the number of uses, and the suppression lists that contain the last recipient.
 */
import { Anchor, Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import type { InboxRuleEntry } from '../../../src/operations/inbox-rules.ts';
import { get, path, remove } from '../api/client';
import { usePollingInterval } from '../api/live-connection';
import { useApiMutation } from '../api/mutation';
import { formatLabel } from '../messages/labels';
import { Copyable } from '../parts/copyable';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import { RelativeTime } from '../parts/relative-time';
import { StatusBadge, type Tone } from '../parts/status-badge';
import { formatListOwner } from '../suppressions/list-owner';
import { RuleDialog } from './rule-dialog';

export function useInboxRules(isEnabled = true) {
  const refetchInterval = usePollingInterval();
  return useQuery({
    queryKey: ['inbox', 'rules'],
    queryFn: () => get<readonly InboxRuleEntry[]>('/inbox/rules'),
    refetchInterval,
    enabled: isEnabled,
  });
}

export function Rules() {
  const rules = useInboxRules();
  const [isDialogOpen, setIsDialogOpen] = useState(false);
  const addButton = <Button onClick={() => setIsDialogOpen(true)}>Add rule</Button>;
  return (
    <>
      {rules.isPending ? <Loading /> : null}
      {rules.isError ? <ErrorAlert error={rules.error} retry={rules.refetch} /> : null}
      {rules.data?.length === 0 ? (
        <EmptyState
          title="No rules"
          nextStep={
            <>
              {addButton}
              <Copyable
                value="postrider inbox rule add later.example --code 451 --enhanced 4.3.0"
                label="the command"
              />
            </>
          }
        >
          A rule answers the next delivery attempts to an address or a domain with a reply, a delay or a lost
          connection. Retries, suppression and webhooks then work as after a real failure.
        </EmptyState>
      ) : null}
      {rules.data === undefined || rules.data.length === 0 ? null : (
        <section className="card flush" aria-label="Rules">
          <div className="card-header">
            <h2>Which attempts does a rule answer?</h2>
            <div className="card-aside">{addButton}</div>
          </div>
          <RuleTable rules={rules.data} />
        </section>
      )}
      {isDialogOpen ? <RuleDialog onClose={() => setIsDialogOpen(false)} /> : null}
    </>
  );
}

function RuleTable({ rules }: { readonly rules: readonly InboxRuleEntry[] }) {
  return (
    <table className="list">
      <thead>
        <tr>
          <th scope="col">State</th>
          <th scope="col">Recipient and answer</th>
          <th scope="col">Effect</th>
          <th scope="col" className="end">
            Used
          </th>
          <th scope="col">Ends</th>
          <th scope="col" aria-label="Actions" />
        </tr>
      </thead>
      <tbody>
        {rules.map((rule) => (
          <RuleRow key={rule.id} rule={rule} />
        ))}
      </tbody>
    </table>
  );
}

const STATUS_TONES: Readonly<Record<InboxRuleEntry['status'], { readonly tone: Tone; readonly label: string }>> = {
  active: { tone: 'info', label: 'Active' },
  used: { tone: 'success', label: 'Used' },
  expired: { tone: 'neutral', label: 'Expired' },
};

function RuleRow({ rule }: { readonly rule: InboxRuleEntry }) {
  const { id, match, answer, status, times, used, expires, lastUse } = rule;
  const removal = useApiMutation(
    () => remove(path`/inbox/rules/${id}`),
    ['inbox'],
    () => `Removed the rule for ${match}.`,
  );
  return (
    <tr>
      <td>
        <StatusBadge tone={STATUS_TONES[status].tone}>{STATUS_TONES[status].label}</StatusBadge>
      </td>
      <td className="fill">
        <div className="two-lines">
          <span>{match}</span>
          <span>{answer.summary}</span>
        </div>
      </td>
      <td className="fill">
        <div className="two-lines">
          <span>{formatEffect(rule)}</span>
          <span>{formatSuppression(rule)}</span>
        </div>
        {removal.isError ? <ErrorAlert error={removal.error} /> : null}
      </td>
      <td className="end" data-label="Used">
        {used} of {times}
        {lastUse === null ? null : (
          <div>
            <Anchor component={Link} href={path`/messages/${lastUse.message}`} inherit>
              last message
            </Anchor>
          </div>
        )}
      </td>
      <td data-label="Ends">
        <RelativeTime at={expires} />
      </td>
      <td className="end">
        <span className="inbox-rule-actions">
          {lastUse?.suppressed.map((list) => (
            <UnsuppressButton key={list} list={list} address={lastUse.recipient} />
          ))}
          <Button
            variant="default"
            size="compact-sm"
            aria-label={`Remove the rule for ${match}`}
            loading={removal.isPending}
            onClick={() => removal.mutate(undefined)}
          >
            Remove
          </Button>
        </span>
      </td>
    </tr>
  );
}

/** Removes an address from a suppression list. A bounce that a rule caused added the address to this list. */
function UnsuppressButton({ list, address }: { readonly list: string; readonly address: string }) {
  const removal = useApiMutation(
    () => remove(path`/accounts/${list}/suppressions/${address}`),
    ['suppressions', 'inbox'],
    () => `Removed ${address} from the suppression list of ${formatListOwner(list)}.`,
  );
  return (
    <Button
      variant="light"
      size="compact-sm"
      aria-label={`Remove ${address} from the suppression list of ${formatListOwner(list)}`}
      loading={removal.isPending}
      onClick={() => removal.mutate(undefined)}
    >
      Unsuppress
    </Button>
  );
}

function formatEffect({ effect: { outcome, category } }: InboxRuleEntry): string {
  return category === null ? formatLabel(outcome) : `${formatLabel(outcome)}: ${category.replaceAll('-', ' ')}`;
}

function formatSuppression({ effect: { suppresses }, lastUse }: InboxRuleEntry): string {
  if (lastUse !== null && lastUse.suppressed.length > 0)
    return `${lastUse.recipient} is suppressed for ${lastUse.suppressed.map(formatListOwner).join(', ')}`;
  return suppresses ? 'Suppresses the recipient' : 'Suppresses no recipient';
}
