/** An account's limits and how much of them is used, and its reputation against the thresholds that lock it. */
import { Paper, SimpleGrid, Stack, Text, Title } from '@mantine/core';
import type { ThresholdUsage } from '../../../src/model/account.ts';
import type { AccountDetails } from '../../../src/operations/accounts/schemas.ts';
import { Gauge } from '../parts/gauge';
import { counted, grouped, percentage } from '../parts/number';
import { duration, exact, When } from '../parts/when';

/** As the service counts. */
const FOR_RATES = 100;

export function LimitGauges({ account }: { readonly account: AccountDetails }) {
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      <Paper withBorder p="md">
        <Stack gap="lg">
          <Title order={2} size="h4">
            Limits
          </Title>
          <Volume account={account} />
          <Rate account={account} />
          <Throttle account={account} />
        </Stack>
      </Paper>
      <Paper withBorder p="md">
        <Stack gap="lg">
          <Title order={2} size="h4">
            Last 7 days
          </Title>
          <Text>{counted(account.reputation.emails, 'email')} sent</Text>
          {account.reputation.thresholds.map((threshold) => (
            <Threshold key={threshold.metric} threshold={threshold} emails={account.reputation.emails} />
          ))}
          {account.reputation.emails < FOR_RATES ? (
            <Text size="sm" c="dimmed">
              While there are fewer than {FOR_RATES} emails the numbers count, from then on the rates:{' '}
              {percentage(account.maxBounces)} hard bounces or {percentage(account.maxComplaints)} complaints.
            </Text>
          ) : null}
        </Stack>
      </Paper>
    </SimpleGrid>
  );
}

function Volume({ account: { volume, volumeUsed, volumeLeft, volumeExpires } }: { readonly account: AccountDetails }) {
  const text =
    volume === null
      ? `unlimited, ${grouped(volumeUsed)} used`
      : `${grouped(volumeLeft ?? 0)} of ${grouped(volume)} left`;
  const reached = volume === null ? null : volume === 0 ? 1 : volumeUsed / volume;
  const over = volumeExpires !== null && Date.parse(volumeExpires) <= Date.now();
  return (
    <Gauge label="Volume" text={text} reached={reached}>
      {volumeExpires === null ? (
        'It does not expire.'
      ) : (
        <>
          {over ? 'Expired, so nothing is accepted: ' : 'Expires '}
          <When at={volumeExpires} /> ({exact(volumeExpires)})
        </>
      )}
    </Gauge>
  );
}

function Rate({
  account: { rate, rateLimit, rateUsed, ratePeriodMs, rateResets },
}: {
  readonly account: AccountDetails;
}) {
  if (rateLimit === null || ratePeriodMs === null) return <Gauge label="Rate" text="no limit" reached={null} />;
  return (
    <Gauge
      label={`Rate ${rate}`}
      text={`${grouped(rateUsed)} of ${grouped(rateLimit)} used`}
      reached={rateUsed / rateLimit}
    >
      {rateResets === null ? (
        `No period of ${duration(ratePeriodMs)} is running; the next email begins one.`
      ) : (
        <>
          The period of {duration(ratePeriodMs)} ends <When at={rateResets} />
        </>
      )}
    </Gauge>
  );
}

function Throttle({ account: { throttlePerSecond, throttleBurst } }: { readonly account: AccountDetails }) {
  if (throttlePerSecond === null) return <Gauge label="Throttle" text="no limit" reached={null} />;
  return (
    <Gauge
      label="Throttle"
      text={`${grouped(throttlePerSecond)} a second, ${grouped(throttleBurst ?? throttlePerSecond)} at once`}
      reached={null}
    />
  );
}

function Threshold({
  threshold: { metric, count, limitType, limit, usage },
  emails,
}: {
  readonly threshold: ThresholdUsage;
  readonly emails: number;
}) {
  const label = metric === 'bounces' ? 'Hard bounces' : 'Complaints';
  const share = emails === 0 ? '' : ` (${percentage(count / emails)})`;
  if (limit === null)
    return <Gauge label={label} text={`${grouped(count)}${share}, which never lock`} reached={null} />;
  const locksAt = limitType === 'rate' ? percentage(limit) : `${grouped(limit)} of them`;
  return <Gauge label={label} text={`${grouped(count)}${share}, locks at ${locksAt}`} reached={usage} />;
}
