/** The way in: the password, or a word on where the one-time link is found. */
import { Button, Center, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { post } from './api/client';
import { Failure } from './parts/states';

export function SignIn({ reason }: { readonly reason: string }) {
  const queries = useQueryClient();
  const [password, setPassword] = useState('');
  const signIn = useMutation({
    mutationFn: () => post('/sign-in', { password }),
    onSuccess: () => queries.invalidateQueries(),
  });
  return (
    <Center component="main" mih="100vh" p="md">
      <Paper withBorder p="lg" w="100%" maw="26rem">
        <form
          onSubmit={(event) => {
            event.preventDefault();
            signIn.mutate();
          }}
        >
          <Stack>
            <Title order={1} size="h2">
              Postrider
            </Title>
            <Text>{reason}</Text>
            <PasswordInput
              label="Operator password"
              description="The value of POSTRIDER_OPERATOR_PASSWORD. Where none is set, open the link that the service printed at its start."
              autoComplete="current-password"
              value={password}
              onChange={(event) => setPassword(event.currentTarget.value)}
              visibilityToggleButtonProps={{ 'aria-label': 'Show the password' }}
            />
            {signIn.isError ? <Failure error={signIn.error} /> : null}
            <Button type="submit" loading={signIn.isPending} disabled={password === ''}>
              Sign in
            </Button>
          </Stack>
        </form>
      </Paper>
    </Center>
  );
}
